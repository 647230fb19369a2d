/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A transcript as a document. All that came from the log is escaped: in HTML by character, and what a reader would not
 * see is shown as a sign; the page has no script, and forbids itself to load anything. In Markdown results stand in fences
 * that are longer than any in them, and prose may have no tags.
 */
#include "engine/transcript.h"

#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/timefmt.h"
#include "base/utf8.h"
#include "engine/session_words.h"

#define ARGS_LINE 100

struct writing {
    struct buf *out;
    const struct tide_session_info *info;
};

/* ---- words ---- */

void transcript_args_line(struct buf *out, const char *args, size_t max_bytes)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json *v = NULL;
    struct str line = str_from(args), clipped;

    if (!json_parse(&a, line, NULL, &v, NULL, NULL) && v->type == JSON_OBJECT) {
        if (!v->first)
            line = STR("");
        else if (!v->first->next && v->first->type == JSON_STRING)
            line = json_text(&a, v->first);
    }
    clipped = utf8_clip(line, max_bytes);
    for (size_t i = 0; i < clipped.len; i++)
        buf_add_char(out, clipped.ptr[i] == '\n' ? ' ' : clipped.ptr[i]);
    if (clipped.len < line.len)
        buf_add_str(out, STR("…"));
}

static const char *outcome_words(const struct transcript_entry *e)
{
    static const char *const words[] = {"", "", "failed", "outcome unknown", "no result", "", "", "", ""};

    return words[e->outcome];
}

void transcript_note(struct buf *out, const struct transcript_entry *e)
{
    const bool says = e->text[0] != '\0', named = e->name[0] && !says; /* the question says more than its name */

    switch (e->type) {
    case TRANSCRIPT_NODE:
        buf_addf(out, "node %s%s", e->name,
                 e->outcome == TRANSCRIPT_OK       ? " is complete"
                 : e->outcome == TRANSCRIPT_FAILED ? " failed"
                                                   : "");
        break;
    case TRANSCRIPT_QUESTION:
        buf_addf(out, "waits for %s%s%s", e->by, named ? " " : "", named ? e->name : "");
        break;
    case TRANSCRIPT_ANSWER:
        buf_addf(out, "answered%s%s", e->by[0] ? " by " : "", e->by);
        break;
    case TRANSCRIPT_RUN:
        buf_addf(out, "%s", e->outcome == TRANSCRIPT_CONTINUED ? "resumed" : transcript_outcome_word(e->outcome));
        break;
    case TRANSCRIPT_ROLLBACK:
        buf_addf(out, "rolled back to event %" PRId64, e->to_seq);
        break;
    case TRANSCRIPT_FORK:
        buf_addf(out, "forked from %s at event %" PRId64 ": everything above is inherited", e->name, e->to_seq);
        break;
    case TRANSCRIPT_FORKED:
        buf_addf(out, "session %s was forked off here", e->name);
        break;
    default:
        break;
    }
    if (says)
        buf_addf(out, ": %s", e->text);
}

static const char *role_of(const struct transcript_entry *e)
{
    return e->type == TRANSCRIPT_USER ? e->by[0] ? "Hook" : "User" : "Assistant";
}

/* ---- HTML ---- */

static void html(struct buf *out, const char *text)
{
    struct str s = str_from(text);

    while (s.len > 0) {
        uint32_t c = 0;
        size_t n = utf8_next(s, &c);

        if (!n || (utf8_is_unseen(c) && c != '\n' && c != '\t' && !utf8_is_joiner(c)))
            buf_add_str(out, STR("\xef\xbf\xbd"));
        else if (c == '&')
            buf_add_str(out, STR("&amp;"));
        else if (c == '<')
            buf_add_str(out, STR("&lt;"));
        else if (c == '>')
            buf_add_str(out, STR("&gt;"));
        else if (c == '"')
            buf_add_str(out, STR("&quot;"));
        else if (c == '\'')
            buf_add_str(out, STR("&#39;"));
        else
            buf_add(out, s.ptr, n);
        n = n ? n : 1;
        s = (struct str){s.ptr + n, s.len - n};
    }
}

static void html_head(const struct writing *w, const char *title)
{
    char status[STATUS_SIZE], when[TIME_PEOPLE_SIZE];

    buf_add_str(w->out, STR("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
                            "'unsafe-inline'\">\n"
                            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>"));
    html(w->out, title);
    buf_add_str(
        w->out,
        STR("</title>\n<style>\n"
            "body{font:16px/1.5 system-ui,sans-serif;max-width:48rem;margin:2rem auto;padding:0 "
            "1rem;color:#1b1f24;background:#fff}\n"
            "h1{font-size:1.3rem;margin:0}header p,time,.note{color:#59636e;font-size:.85rem}\n"
            "article{margin:1rem 0;padding:.5rem .8rem;border-left:3px solid #d1d9e0}\n"
            ".user{border-color:#0969da;background:#f3f8ff}h2{font-size:.9rem;margin:0}\n"
            ".text{white-space:pre-wrap;overflow-wrap:anywhere}pre{white-space:pre-wrap;overflow-wrap:anywhere;font-"
            "size:.85rem;background:#f6f8fa;padding:.5rem}\n"
            "details{margin:.4rem 0}summary{cursor:pointer;overflow-wrap:anywhere}.bad{color:#b35900}\n"
            ".cut{opacity:.55}.cut .text{text-decoration:line-through}\n"
            "@media(prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}.user{background:#121d2f}"
            "pre{background:#161b22}article{border-color:#3d444d}}\n"
            "</style></head><body>\n<header><h1>"));
    html(w->out, title);
    buf_add_str(w->out, STR("</h1><p>"));
    html(w->out, w->info->id);
    buf_add_str(w->out, STR(" · "));
    html(w->out, session_status(status, w->info));
    buf_addf(w->out, " · %s</p></header>\n<main>\n", time_people(when, w->info->created_ms));
}

/* What is seen of a call while it is folded. */
static void begin_tool(struct buf *out, const struct transcript_entry *e)
{
    AUTO(buf_done) struct buf line = BUF_INIT(4096);

    transcript_args_line(&line, e->args, ARGS_LINE);
    buf_add_str(out, STR("<details><summary><code>"));
    html(out, e->name);
    buf_add_str(out, STR("</code> "));
    html(out, buf_cstr(&line));
}

static void html_tool(struct buf *out, const struct transcript_entry *e)
{
    begin_tool(out, e);
    if (outcome_words(e)[0])
        buf_addf(out, " <b class=\"bad\">%s</b>", outcome_words(e));
    buf_add_str(out, STR("</summary>"));
    if (e->args[0]) {
        buf_add_str(out, STR("<pre>"));
        html(out, e->args);
        buf_add_str(out, STR("</pre>"));
    }
    buf_add_str(out, STR("<pre>"));
    html(out, e->text);
    buf_add_str(out, STR("</pre></details>\n"));
}

static int on_html(void *arg, const struct transcript_entry *e)
{
    AUTO(buf_done) struct buf note = BUF_INIT(SIZE_MAX / 4);
    char when[TIME_PEOPLE_SIZE];
    struct buf *out = ((struct writing *)arg)->out;

    if (e->type > TRANSCRIPT_TOOL) {
        transcript_note(&note, e);
        buf_addf(out, "<p class=\"note%s\">— ", e->cut ? " cut" : "");
        html(out, buf_cstr(&note));
        buf_add_str(out, STR("</p>\n"));
        return out->failed;
    }
    buf_addf(out, "<article class=\"%s%s\">", transcript_type_word(e->type), e->cut ? " cut" : "");
    if (e->type == TRANSCRIPT_TOOL) {
        html_tool(out, e);
    } else {
        buf_addf(out, "<h2>%s%s", role_of(e), e->node[0] ? " · " : "");
        html(out, e->node);
        buf_addf(out, " <time>%s%s</time></h2><div class=\"text\">", time_people(when, e->ts_ms),
                 e->cut ? ", rolled back" : "");
        html(out, e->text);
        buf_add_str(out, STR("</div>"));
    }
    buf_add_str(out, STR("</article>\n"));
    return out->failed;
}

/* ---- Markdown ---- */

/* What nobody would see is shown; line ends stay. `prose`: tags are no tags, but in code they are text anyway. */
static void markdown(struct buf *out, const char *text, bool prose)
{
    struct str s = str_from(text);
    bool code = false, fenced = false, begins = true;

    while (s.len > 0) {
        uint32_t c = 0;
        size_t n = utf8_next(s, &c);

        if (begins && str_starts(s, STR("```")))
            fenced = !fenced;
        if (c == '`' && !fenced)
            code = !code;
        code = code && c != '\n';
        begins = c == '\n';
        if (!n || (utf8_is_unseen(c) && c != '\n' && c != '\t' && !utf8_is_joiner(c)))
            buf_add_str(out, STR("\xef\xbf\xbd"));
        else if (c == '<' && prose && !code && !fenced)
            buf_add_str(out, STR("\\<"));
        else
            buf_add(out, s.ptr, n);
        n = n ? n : 1;
        s = (struct str){s.ptr + n, s.len - n};
    }
}

/* One line of text: what would begin something else is escaped. */
static void markdown_line(struct buf *out, const char *text)
{
    for (; *text; text++) {
        if (strchr("\\`*_[]<>#&|", *text))
            buf_add_char(out, '\\');
        buf_add_char(out, *text == '\n' || (unsigned char)*text < ' ' ? ' ' : *text);
    }
}

static void markdown_fence(struct buf *out, const char *text)
{
    size_t longest = 2, run = 0;

    for (const char *p = text; *p; p++) {
        run = *p == '`' ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    for (size_t i = 0; i <= longest; i++)
        buf_add_char(out, '`');
    buf_add_char(out, '\n');
    markdown(out, text, false);
    buf_addf(out, "%s", out->len && out->ptr[out->len - 1] == '\n' ? "" : "\n");
    for (size_t i = 0; i <= longest; i++)
        buf_add_char(out, '`');
    buf_add_char(out, '\n');
}

static void markdown_tool(struct buf *out, const struct transcript_entry *e)
{
    begin_tool(out, e);
    buf_addf(out, "%s%s</summary>\n\n", outcome_words(e)[0] ? " · " : "", outcome_words(e));
    if (e->args[0])
        markdown_fence(out, e->args);
    markdown_fence(out, e->text);
    buf_add_str(out, STR("\n</details>\n\n"));
}

static int on_markdown(void *arg, const struct transcript_entry *e)
{
    AUTO(buf_done) struct buf note = BUF_INIT(SIZE_MAX / 4);
    char when[TIME_PEOPLE_SIZE];
    struct buf *out = ((struct writing *)arg)->out;

    if (e->type == TRANSCRIPT_TOOL) {
        markdown_tool(out, e);
    } else if (e->type > TRANSCRIPT_TOOL) {
        transcript_note(&note, e);
        buf_add_str(out, STR("*— "));
        markdown_line(out, buf_cstr(&note));
        buf_add_str(out, e->cut ? STR(" (rolled back)*\n\n") : STR("*\n\n"));
    } else {
        buf_addf(out, "## %s%s", role_of(e), e->node[0] ? " · " : "");
        markdown_line(out, e->node);
        buf_addf(out, " · %s%s\n\n", time_people(when, e->ts_ms), e->cut ? " (rolled back)" : "");
        markdown(out, e->text, true);
        buf_add_str(out, STR("\n\n"));
    }
    return out->failed;
}

/* ---- all of it ---- */

enum tide_code transcript_write_entries(const struct tide_session_info *info, transcript_entries_fn *each, void *from,
                                        enum transcript_format format, struct buf *out, struct tide_err *err)
{
    struct writing w = {.out = out, .info = info};
    char status[STATUS_SIZE], when[TIME_PEOPLE_SIZE];
    const char *title = info->title && *info->title ? info->title : info->id;
    enum tide_code code;

    if (format == TRANSCRIPT_HTML) {
        html_head(&w, title);
    } else {
        buf_add_str(out, STR("# "));
        markdown_line(out, title);
        buf_addf(out, "\n\n%s · %s · %s\n\n", info->id, session_status(status, info),
                 time_people(when, info->created_ms));
    }
    code = each(from, format == TRANSCRIPT_HTML ? on_html : on_markdown, &w, err);
    if (!code && format == TRANSCRIPT_HTML)
        buf_add_str(out, STR("</main></body></html>\n"));
    return code;
}

struct of_session {
    tide_session *session;
    const atomic_int *stop;
};

static enum tide_code each_of_session(void *from, transcript_fn *fn, void *arg, struct tide_err *err)
{
    const struct of_session *s = from;

    return transcript_read(s->session, s->stop, fn, arg, err);
}

enum tide_code transcript_write(tide_session *session, enum transcript_format format, const atomic_int *stop,
                                struct buf *out, struct tide_err *err)
{
    const struct tide_session_info *info;
    struct of_session from = {session, stop};

    return tide_session_get_info(session, &info, err)
               ? err->code
               : transcript_write_entries(info, each_of_session, &from, format, out, err);
}
