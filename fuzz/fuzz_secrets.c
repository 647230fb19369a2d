/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looking for secrets, against the plain way. The input is lines of secrets, an empty line, and a text.
 *
 * A search finds what comparing at every place finds. A text that was cleaned holds no secret, plain or with its escapes
 * undone; where nothing is found there is none. Pieces show none either, however they are cut.
 */
#include "base/mem.h"
#include "base/needles.h"
#include "base/secrets.h"
#include "fuzz.h"

#define SECRETS 8

struct input {
    struct str secrets[SECRETS], text;
    size_t n;
};

static struct input split(struct str all)
{
    struct input in = {.n = 0};

    while (all.len && in.n < SECRETS) {
        const char *end = memchr(all.ptr, '\n', all.len);
        size_t len = end ? (size_t)(end - all.ptr) : all.len;

        if (len)
            in.secrets[in.n++] = (struct str){all.ptr, len};
        all = (struct str){all.ptr + len + (end != NULL), all.len - len - (end != NULL)};
        if (!len)
            break;
    }
    in.text = all;
    return in;
}

static void check_search(const struct input *in)
{
    struct str texts[SECRETS];
    size_t n = 0, at = 0, which = 0, from = 0;
    struct needles *m;

    for (size_t i = 0; i < in->n; i++)
        if (in->secrets[i].len >= NEEDLE_MIN)
            texts[n++] = in->secrets[i];
    m = needles_new(texts, n);
    for (size_t want = 0; want < in->text.len; want++) {
        size_t longest = 0;

        for (size_t i = 0; i < n; i++)
            if (texts[i].len <= in->text.len - want && texts[i].len > longest &&
                memcmp(in->text.ptr + want, texts[i].ptr, texts[i].len) == 0)
                longest = texts[i].len;
        if (!longest)
            continue;
        MUST(needles_find(m, in->text, from, &at, &which) && at == want && texts[which].len == longest);
        from = at + 1;
    }
    MUST(!needles_find(m, in->text, from, &at, &which));
    needles_free(m);
}

static bool holds(const struct input *in, struct str text)
{
    for (size_t i = 0; i < in->n; i++)
        if (in->secrets[i].len >= SECRET_MIN && memmem(text.ptr, text.len, in->secrets[i].ptr, in->secrets[i].len))
            return true;
    return false;
}

/* A secret that may stand in a mark, or that a mark and what is beside it may make, says nothing here. */
static bool is_plain(struct str secret)
{
    for (size_t i = 0; i < secret.len; i++)
        if (memchr("[]:redactKny\r\n\t\v\f ", secret.ptr[i], 19))
            return false;
    return true;
}

static void check_pieces(struct secrets *s, const struct input *in, size_t step)
{
    struct secret_stream stream = SECRET_STREAM_INIT;
    struct buf shown = BUF_INIT(1 << 24);

    for (size_t at = 0; at < in->text.len; at += step)
        secret_stream_put(s, &stream,
                          (struct str){in->text.ptr + at, in->text.len - at < step ? in->text.len - at : step}, false,
                          &shown);
    secret_stream_put(s, &stream, STR(""), true, &shown);
    MUST(!holds(in, buf_view(&shown)));
    buf_done(&stream.held);
    buf_done(&shown);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = split((struct str){(const char *)data, size});
    struct secrets *s = secrets_new();
    struct buf clean = BUF_INIT(1 << 24);
    bool found;

    check_search(&in);
    for (size_t i = 0; i < in.n; i++) {
        if (is_plain(in.secrets[i]))
            secrets_add(s, STR("Kny"), in.secrets[i]);
        else
            in.secrets[i].len = 0;
    }
    found = secrets_clean(s, in.text, &clean);
    MUST(found == secrets_find(s, in.text) && (found || !holds(&in, in.text)));
    if (found)
        MUST(!holds(&in, buf_view(&clean)));
    if (size < 2000)
        check_pieces(s, &in, 1 + size % 7);
    buf_done(&clean);
    secrets_free(s);
    return 0;
}
