/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images that go with the next prompt. They are part of its event, so that what the model saw is what the log has: a resume sends
 * the same bytes, whatever has become of the file. The data are members of an object of their own, which is what a store keeps
 * once by digest when they are big.
 */
#include <sodium.h>
#include <stdio.h>

#include "agent/agent.h"
#include "base/image_type.h"

enum tide_code tide_agent_attach(tide_agent *a, const char *name, const void *bytes, size_t len, struct tide_err *err)
{
    const char *type = image_type((struct str){bytes, len});
    size_t room = sodium_base64_encoded_len(len, sodium_base64_VARIANT_ORIGINAL);
    struct agent_image *image;

    ERR_LOCAL(err);
    if (a->n_images == TIDE_IMAGES_MAX)
        return tide_fail(err, TIDE_TOO_BIG, "a prompt takes at most %d images", TIDE_IMAGES_MAX);
    if (len > TIDE_IMAGE_MAX_BYTES)
        return tide_fail(err, TIDE_TOO_BIG, "'%.100s': an image has at most %d bytes", name, TIDE_IMAGE_MAX_BYTES);
    if (!type)
        return tide_fail(err, TIDE_INVALID, "'%.100s' is not a PNG, JPEG, GIF or WebP image", name);
    if (!str_is_utf8(str_from(name), NULL))
        return tide_fail(err, TIDE_INVALID, "the name of an image is not valid UTF-8");
    image = &a->images[a->n_images++];
    *image = (struct agent_image){.name = mem_dup(str_from(name)), .type = type, .data = mem_alloc(room), .bytes = len};
    sodium_bin2base64(image->data, room, bytes, len, sodium_base64_VARIANT_ORIGINAL);
    return TIDE_OK;
}

void agent_images_drop(struct tide_agent *a)
{
    for (size_t i = 0; i < a->n_images; i++) {
        free(a->images[i].name);
        free(a->images[i].data);
    }
    a->n_images = 0;
}

void agent_images_put(struct tide_agent *a, struct json_out *o)
{
    char key[8];

    if (!a->n_images)
        return;
    json_out_key(o, STR("images"));
    json_out_begin(o, '[');
    for (size_t i = 0; i < a->n_images; i++) {
        json_out_begin(o, '{');
        json_out_kstr(o, STR("name"), str_from(a->images[i].name));
        json_out_kstr(o, STR("media_type"), str_from(a->images[i].type));
        json_out_kint(o, STR("bytes"), (int64_t)a->images[i].bytes);
        json_out_end(o, '}');
    }
    json_out_end(o, ']');
    json_out_key(o, STR("image_data"));
    json_out_begin(o, '{');
    for (size_t i = 0; i < a->n_images; i++) {
        snprintf(key, sizeof(key), "%zu", i);
        json_out_kstr(o, str_from(key), str_from(a->images[i].data));
    }
    json_out_end(o, '}');
}
