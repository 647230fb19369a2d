/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as an answer in the OpenAI protocol (fuzz_stream.h says what must hold). */
#include "fuzz_stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_stream(&provider_openai, (struct str){(const char *)data, size});
    return 0;
}
