/* SPDX-License-Identifier: Apache-2.0 */
/* Answers as the two protocols stream them, whole: tests cut and bend them. */
#ifndef TESTS_AGENT_STREAMS_H
#define TESTS_AGENT_STREAMS_H

#define EVENT(type, json) "event: " type "\ndata: " json "\n\n"
#define CHUNK(json) "data: " json "\n\n"

/* Thinking, text with characters of two, three and four bytes, two calls whose arguments come in turns, usage with cache. */
#define ANTHROPIC_BOTH                                                                                                 \
    EVENT("message_start",                                                                                             \
          "{\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"role\":\"assistant\",\"content\":[],"           \
          "\"usage\":{\"input_tokens\":10,\"cache_creation_input_tokens\":20,\"cache_read_input_tokens\":300,"         \
          "\"output_tokens\":1}}}")                                                                                    \
    EVENT("ping", "{\"type\": \"ping\"}")                                                                              \
    EVENT("content_block_start", "{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":"          \
                                 "\"thinking\",\"thinking\":\"\"}}")                                                   \
    EVENT("content_block_delta", "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":"                  \
                                 "\"thinking_delta\",\"thinking\":\"hm\"}}")                                           \
    EVENT("content_block_delta", "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":"                  \
                                 "\"signature_delta\",\"signature\":\"c2ln\"}}")                                       \
    EVENT("content_block_stop", "{\"type\":\"content_block_stop\",\"index\":0}")                                       \
    EVENT("content_block_start", "{\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":"          \
                                 "\"redacted_thinking\",\"data\":\"eA==\"}}")                                          \
    EVENT("content_block_start",                                                                                       \
          "{\"type\":\"content_block_start\",\"index\":2,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}")        \
    EVENT("content_block_delta", "{\"type\":\"content_block_delta\",\"index\":2,\"delta\":{\"type\":\"text_delta\","   \
                                 "\"text\":\"Gr\xc3\xbc\xc3\x9f\"}}")                                                  \
    EVENT("content_block_delta", "{\"type\":\"content_block_delta\",\"index\":2,\"delta\":{\"type\":\"text_delta\","   \
                                 "\"text\":\" \xe2\x82\xac \\ud83d\\ude00\\n\"}}")                                     \
    EVENT("content_block_stop", "{\"type\":\"content_block_stop\",\"index\":2}")                                       \
    EVENT("content_block_start", "{\"type\":\"content_block_start\",\"index\":3,\"content_block\":{\"type\":"          \
                                 "\"tool_use\",\"id\":\"toolu_1\",\"name\":\"bash\",\"input\":{}}}")                   \
    EVENT("content_block_start", "{\"type\":\"content_block_start\",\"index\":4,\"content_block\":{\"type\":"          \
                                 "\"tool_use\",\"id\":\"toolu_2\",\"name\":\"glob\",\"input\":{}}}")                   \
    EVENT("content_block_delta", "{\"type\":\"content_block_delta\",\"index\":3,\"delta\":{\"type\":"                  \
                                 "\"input_json_delta\",\"partial_json\":\"{\\\"command\\\": \\\"l\"}}")                \
    EVENT("content_block_delta", "{\"type\":\"content_block_delta\",\"index\":4,\"delta\":{\"type\":"                  \
                                 "\"input_json_delta\",\"partial_json\":\"\"}}")                                       \
    EVENT("content_block_delta", "{\"type\":\"content_block_delta\",\"index\":3,\"delta\":{\"type\":"                  \
                                 "\"input_json_delta\",\"partial_json\":\"s\\\"}\"}}")                                 \
    EVENT("content_block_stop", "{\"type\":\"content_block_stop\",\"index\":3}")                                       \
    EVENT("content_block_stop", "{\"type\":\"content_block_stop\",\"index\":4}")                                       \
    EVENT("message_delta", "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\",\"stop_sequence\":"    \
                           "null},\"usage\":{\"output_tokens\":42}}")                                                  \
    EVENT("message_stop", "{\"type\":\"message_stop\"}")

#define OPENAI_BOTH                                                                                                    \
    CHUNK("{\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"role\":"          \
          "\"assistant\",\"content\":null,\"reasoning_content\":\"hm\"},\"finish_reason\":null}],\"usage\":null}")     \
    ": keep-alive\n\n" CHUNK("{\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Gr\xc3\xbc\xc3\x9f\"}," \
                             "\"finish_reason\":null}]}")                                                              \
        CHUNK(                                                                                                         \
            "{\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" \xe2\x82\xac \\ud83d\\ude00\\n\"}}]}")  \
            CHUNK("{\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":"            \
                  "\"toolu_1\",\"type\":\"function\",\"function\":{\"name\":\"bash\",\"arguments\":\"\"}}]}}]}")       \
                CHUNK("{\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,"               \
                      "\"function\":{\"arguments\":\"{\\\"command\\\": \\\"l\"}},{\"index\":1,\"id\":\"toolu_2\","     \
                      "\"type\":\"function\",\"function\":{\"name\":\"glob\",\"arguments\":\"\"}}]}}]}")               \
                    CHUNK("{\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,"           \
                          "\"function\":{\"arguments\":\"s\\\"}\"}}]}}]}")                                             \
                        CHUNK("{\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":"                \
                              "\"tool_calls\"}]}")                                                                     \
                            CHUNK("{\"id\":\"c\",\"choices\":[],\"usage\":{\"prompt_tokens\":330,"                     \
                                  "\"completion_tokens\":42,\"prompt_tokens_details\":{\"cached_tokens\":300}}}")      \
                                CHUNK("[DONE]")

#define BOTH_TEXT "Gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80\n"

#endif
