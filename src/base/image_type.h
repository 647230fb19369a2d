/* SPDX-License-Identifier: Apache-2.0 */
/* Images that models take, recognised by their first bytes: names are not reliable. */
#ifndef BASE_IMAGE_TYPE_H
#define BASE_IMAGE_TYPE_H

#include "base/str.h"

/* The media type of a PNG, JPEG, GIF or WebP; NULL: it is none of them. */
const char *image_type(struct str bytes);

#endif
