// SPDX-License-Identifier: Apache-2.0
// What is built is embedded in the binary: names with digests, nothing inline, nothing from elsewhere.
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

export default defineConfig({
    plugins: [react()],
    base: '/',
    build: {
        target: 'es2022',
        assetsInlineLimit: 0,
        modulePreload: { polyfill: false },
        reportCompressedSize: false,
        rollupOptions: { output: { entryFileNames: 'assets/[name]-[hash].js', chunkFileNames: 'assets/[name]-[hash].js', assetFileNames: 'assets/[name]-[hash][extname]' } },
    },
    server: { proxy: { '/api': { target: process.env.TIDEMARK_URL ?? 'http://127.0.0.1:7007', ws: true } } },
});
