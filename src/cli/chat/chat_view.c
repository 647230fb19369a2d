/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything goes through emit(): it takes the spinner away, ends a line of the answer that is still open, and writes in
 * one piece. Between parts of different kinds stands an empty line, and never two.
 *
 * `shown` is the answer's text as far as it is on the screen. After an attempt that failed it is what the next attempt is
 * compared with (`same` bytes of it have come again); the markdown state is left as it was, so that the text continues
 * where it stopped, be it within a code block.
 */
#include "cli/chat/chat_view.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"
#include "terminal/text_flow.h"
#include "terminal/markdown.h"
#include "terminal/output.h"
#include "terminal/spinner.h"
#include "cli/timeline/timeline_text.h"

#define TEXT_MAX ((size_t)64 << 20)
#define ITEM_MIN 22 /* columns for the text of an item */

enum kind { KIND_NONE, KIND_USER, KIND_TEXT, KIND_TOOL, KIND_NOTE, KIND_BLANK };

struct view {
    struct view_config config;
    struct markdown *md;
    struct spinner spinner;
    enum kind last; /* what was drawn last */
    bool in_text;
    struct buf shown;
    bool again;  /* the text of a failed attempt stands there: the next one is compared with it */
    size_t same; /* bytes that have come again */
    int unwritten;
};

struct view *view_new(const struct view_config *config)
{
    struct view *v = mem_zero(sizeof(*v));
    enum markdown_mode mode = !config->tty    ? MARKDOWN_RAW
                              : config->color ? MARKDOWN_STYLED
                              : config->dumb  ? MARKDOWN_PLAIN
                                              : MARKDOWN_MONOCHROME;

    v->config = *config;
    v->md = markdown_new(mode, terminal_columns(config->out));
    v->shown = (struct buf)BUF_INIT(TEXT_MAX);
    spinner_init(&v->spinner, config->tty ? config->out : -1, config->color);
    return v;
}

void view_free(struct view *v)
{
    if (!v)
        return;
    spinner_stop(&v->spinner);
    markdown_free(v->md);
    buf_done(&v->shown);
    free(v);
}

/* ---- writing ---- */

/* A failed write to the terminal does not stop the work; it is reported at the end. */
static void write_all(struct view *v, int fd, struct str s)
{
    int bad = fd_write(fd, s);

    v->unwritten = bad && fd == v->config.out ? bad : v->unwritten;
}

int view_unwritten(const struct view *v)
{
    return v->unwritten;
}

static int columns(const struct view *v)
{
    return terminal_columns(v->config.out);
}

static const char *code(const struct view *v, const char *style)
{
    return v->config.tty && v->config.color ? style : "";
}

#define BOLD "\033[1m"
#define DIM "\033[2m"
#define RED "\033[31m"
#define GREEN "\033[32m"
#define YELLOW "\033[33m"
#define PLAIN "\033[0m"

/* Lines of ours; the ones of tools and notes stand together, all others apart. */
static void emit_lines(struct view *v, enum kind kind, struct str lines)
{
    AUTO(buf_done) struct buf out = BUF_INIT(TEXT_MAX);
    bool together = (kind == v->last && (kind == KIND_TOOL || kind == KIND_NOTE)) ||
                    (v->last == KIND_TEXT && markdown_below_blank(v->md));

    spinner_hide(&v->spinner);
    if (v->config.tty) {
        markdown_break(v->md, &out);
        if (v->last != KIND_NONE && v->last != KIND_BLANK && !together)
            buf_add_char(&out, '\n');
    }
    buf_add_str(&out, lines);
    write_all(v, v->config.tty ? v->config.out : v->config.err, buf_view(&out));
    v->last = kind;
}

/* Text behind a mark, wrapped on a terminal, the lines below the first indented as far as the mark is wide. */
static void add_marked(const struct view *v, struct buf *out, const char *mark, const char *style, struct str text)
{
    AUTO(buf_done) struct buf clean = BUF_INIT(TEXT_MAX);
    struct flow_prefix p = {.width = text_columns(str_from(mark))};
    struct text_flow flow;

    glyph_clean(&clean, text);
    flow_init(&flow, v->config.tty ? columns(v) : 1 << 20);
    snprintf(p.first, sizeof(p.first), "%s%s", code(v, style), mark);
    snprintf(p.hang, sizeof(p.hang), "%s%*s", code(v, style), p.width, "");
    for (struct str s = buf_view(&clean); s.len > 0;) {
        const char *end = memchr(s.ptr, '\n', s.len);
        size_t n = end ? (size_t)(end - s.ptr) : s.len;

        flow_prefix(&flow, &p);
        flow_text(&flow, out, (struct str){s.ptr, n}, 0);
        flow_end_line(&flow, out);
        snprintf(p.first, sizeof(p.first), "%s", p.hang);
        n += end != NULL;
        s = (struct str){s.ptr + n, s.len - n};
    }
    if (out->len > 0 && *code(v, style)) {
        out->len--; /* the style ends before the line does */
        buf_add_str(out, STR(PLAIN "\n"));
    }
}

static void note_line(struct view *v, enum kind kind, const char *mark, const char *style, const char *text)
{
    AUTO(buf_done) struct buf out = BUF_INIT(TEXT_MAX);

    add_marked(v, &out, mark, style, str_from(text && *text ? text : " "));
    emit_lines(v, kind, buf_view(&out));
}

void view_notice(struct view *v, const char *text)
{
    if (!v->config.quiet)
        note_line(v, KIND_NOTE, "", DIM, text);
}

/* Where the head leaves no room worth having, the text stands below it. */
void view_item(struct view *v, const char *head, const char *text)
{
    AUTO(buf_done) struct buf out = BUF_INIT(TEXT_MAX);
    bool below = v->config.tty && columns(v) - text_columns(str_from(head)) < ITEM_MIN;

    if (v->config.quiet)
        return;
    if (below)
        add_marked(v, &out, "", DIM, str_from(head));
    add_marked(v, &out, below ? "    " : head, DIM, str_from(*text ? text : " "));
    emit_lines(v, KIND_NOTE, buf_view(&out));
}

void view_warning(struct view *v, const char *text)
{
    note_line(v, KIND_NOTE, "warning: ", YELLOW, text);
}

void view_error(struct view *v, const char *text)
{
    note_line(v, KIND_NOTE, "error: ", RED, text);
}

void view_heading(struct view *v, const char *const *parts)
{
    AUTO(buf_done) struct buf text = BUF_INIT(TEXT_MAX);
    int room = v->config.tty ? columns(v) : 1 << 20, used = 0;

    for (size_t i = 0; parts[i]; i++) {
        int width = text_columns(str_from(parts[i])), more = used + 3 + width;

        buf_add_str(&text, i == 0 ? STR("") : more <= room ? STR(" · ") : STR("\n"));
        used = i > 0 && more <= room ? more : width;
        buf_add_str(&text, str_from(parts[i]));
    }
    if (!v->config.quiet)
        note_line(v, KIND_NOTE, "", BOLD, buf_cstr(&text));
}

void view_command(struct view *v, const char *command, const char *effect)
{
    AUTO(buf_done) struct buf out = BUF_INIT(TEXT_MAX);

    if (v->config.quiet)
        return;
    buf_add_str(&out, str_from(code(v, DIM)));
    name_fit(&out, str_from(command), INT_MAX);
    buf_addf(&out, " %s%s\n", effect, code(v, PLAIN));
    emit_lines(v, KIND_NOTE, buf_view(&out));
}

void view_retry(struct view *v, const char *text)
{
    if (!v->config.quiet)
        note_line(v, KIND_NOTE, "↻ ", YELLOW, text);
}

void view_clear(struct view *v)
{
    if (!v->config.tty)
        return;
    spinner_stop(&v->spinner);
    if (!v->config.dumb)
        write_all(v, v->config.out, STR("\033[H\033[2J\033[3J"));
    v->last = v->config.dumb ? KIND_NOTE : KIND_NONE;
}

void view_user(struct view *v, struct str text)
{
    AUTO(buf_done) struct buf out = BUF_INIT(TEXT_MAX);

    if (v->config.quiet)
        return;
    add_marked(v, &out, "› ", BOLD, text.len ? text : STR(" "));
    emit_lines(v, KIND_USER, buf_view(&out));
}

void view_summary(struct view *v, struct str text)
{
    AUTO(buf_done) struct buf out = BUF_INIT(TEXT_MAX);

    if (v->config.quiet)
        return;
    add_marked(v, &out, "≡ ", DIM, text);
    emit_lines(v, KIND_USER, buf_view(&out));
}

void view_typed(struct view *v)
{
    v->last = KIND_USER;
}

/* ---- the answer ---- */

static void write_text(struct view *v, struct str piece, bool last)
{
    AUTO(buf_done) struct buf out = BUF_INIT(TEXT_MAX);
    size_t gap;

    markdown_columns(v->md, columns(v));
    if (v->config.tty && v->last != KIND_NONE && v->last != KIND_BLANK && v->last != KIND_TEXT)
        buf_add_char(&out, '\n');
    gap = out.len;
    markdown_add(v->md, piece, &out);
    if (last)
        markdown_end(v->md, &out);
    if (out.len == gap)
        return;
    spinner_hide(&v->spinner);
    write_all(v, v->config.out, buf_view(&out));
    v->last = KIND_TEXT;
}

static void show_piece(struct view *v, struct str piece)
{
    buf_add_str(&v->shown, piece);
    write_text(v, piece, false);
}

/* The new attempt says something else: what was shown of it before is shown now. */
static void show_other(struct view *v)
{
    AUTO(buf_done) struct buf begun = BUF_INIT(TEXT_MAX), out = BUF_INIT(1024);

    buf_add(&begun, buf_view(&v->shown).ptr, v->same);
    v->again = false;
    buf_clear(&v->shown);
    note_line(v, KIND_NOTE, "", DIM, "(the new answer differs)");
    markdown_break(v->md, &out); /* on a terminal the note has done so */
    write_all(v, v->config.out, buf_view(&out));
    markdown_reset(v->md, &out);
    show_piece(v, buf_view(&begun));
}

static void show_again(struct view *v, struct str piece)
{
    struct str rest = {buf_view(&v->shown).ptr + v->same, v->shown.len - v->same};
    size_t n = piece.len < rest.len ? piece.len : rest.len;

    if (v->shown.failed || (n > 0 && memcmp(rest.ptr, piece.ptr, n) != 0)) {
        show_other(v);
        show_piece(v, piece);
        return;
    }
    v->same += n;
    v->again = v->same < v->shown.len;
    if (n < piece.len)
        show_piece(v, (struct str){piece.ptr + n, piece.len - n});
}

void view_text(struct view *v, struct str piece)
{
    if (piece.len == 0)
        return;
    v->in_text = true;
    if (v->again)
        show_again(v, piece);
    else
        show_piece(v, piece);
}

void view_text_discard(struct view *v)
{
    if (v->shown.len == 0)
        return;
    if (!v->again || v->same > 0)
        note_line(v, KIND_NOTE, "", DIM, "(interrupted; retrying)");
    v->again = true;
    v->same = 0;
}

/* An attempt that ended before it had said all that stands there has said something else. */
void view_text_end(struct view *v)
{
    if (v->again && v->same > 0)
        show_other(v);
    if (v->in_text && !(v->again && v->same == 0))
        write_text(v, STR(""), true);
    else
        markdown_reset(v->md, &(struct buf)BUF_INIT(0));
    buf_clear(&v->shown);
    v->again = v->in_text = false;
    v->same = 0;
}

/* ---- waiting ---- */

void view_busy(struct view *v, const char *label)
{
    if (label)
        spinner_start(&v->spinner, label, monotonic_ms());
    else
        spinner_stop(&v->spinner);
}

/* Not behind text: the line of an answer that stands still is not drawn over. */
void view_tick(struct view *v)
{
    if (!markdown_in_line(v->md))
        spinner_tick(&v->spinner, monotonic_ms());
}

/* ---- tools ---- */

void view_tool_start(struct view *v, const char *summary)
{
    char label[256];

    snprintf(label, sizeof(label), "%s", summary);
    view_busy(v, label);
}

static struct str first_line(struct str s)
{
    const char *end;

    while (s.len > 0 && (s.ptr[0] == '\n' || s.ptr[0] == '\r'))
        s = (struct str){s.ptr + 1, s.len - 1};
    end = memchr(s.ptr, '\n', s.len);
    return end ? (struct str){s.ptr, (size_t)(end - s.ptr)} : s;
}

static int count_lines(struct str s)
{
    int n = 0;

    for (size_t i = 0; i < s.len; i++)
        n += s.ptr[i] == '\n';
    return n + (s.len > 0 && s.ptr[s.len - 1] != '\n');
}

static void add_result(const struct view *v, struct buf *out, struct str result)
{
    struct str first = first_line(result);
    int lines = count_lines((struct str){first.ptr, (size_t)(result.ptr + result.len - first.ptr)});
    int width = v->config.tty ? columns(v) : 200;
    char more[48] = "";

    if (first.len == 0)
        return;
    if (lines > 1)
        snprintf(more, sizeof(more), " (+%d line%s)", lines - 1, lines == 2 ? "" : "s");
    buf_addf(out, "%s  └ ", code(v, DIM));
    glyph_fit(out, first, width - 4 - (int)strlen(more) > 8 ? width - 4 - (int)strlen(more) : 8);
    buf_addf(out, "%s%s\n", more, code(v, PLAIN));
}

void view_tool_end(struct view *v, const char *summary, enum view_outcome outcome, int64_t ms, struct str result)
{
    static const struct {
        const char *mark, *style, *word;
    } outcomes[] = {
        [VIEW_DONE] = {"✓", GREEN, ""},
        [VIEW_FAILED] = {"✗", RED, "failed"},
        [VIEW_REFUSED] = {"⊘", YELLOW, "refused"},
        [VIEW_STOPPED] = {"■", YELLOW, "stopped"},
        [VIEW_UNKNOWN] = {"?", YELLOW, "outcome unknown"},
    };
    AUTO(buf_done) struct buf out = BUF_INIT(TEXT_MAX);
    char took[24] = "", tail[64];
    int width = v->config.tty ? columns(v) : 200;

    spinner_stop(&v->spinner);
    if (v->config.quiet)
        return;
    if (ms >= 0)
        tl_took(took, ms);
    snprintf(tail, sizeof(tail), "%s%s%s%s", *outcomes[outcome].word ? "  " : "", outcomes[outcome].word,
             *took ? "  " : "", took);
    buf_addf(&out, "%s%s%s ", code(v, outcomes[outcome].style), outcomes[outcome].mark, code(v, PLAIN));
    width -= 2 + (int)strlen(tail);
    glyph_fit(&out, str_from(summary), width > 8 ? width : 8);
    buf_addf(&out, "%s%s%s\n", code(v, DIM), tail, code(v, PLAIN));
    add_result(v, &out, result);
    emit_lines(v, KIND_TOOL, buf_view(&out));
}

/* ---- questions and sums ---- */

/* As it is, but for what must not reach a terminal; broken at the last column, and further in than lines begin. */
static void add_verbatim(const struct view *v, struct buf *out, struct str line)
{
    int width = v->config.tty ? columns(v) : 1 << 20, column = 2;
    const char *style = str_starts(line, STR("+")) ? GREEN : str_starts(line, STR("-")) ? RED : "";

    if (line.len > 0)
        buf_addf(out, "  %s", code(v, style));
    while (line.len > 0) {
        struct glyph g = glyph_next(line, true);

        if (column + g.width > width) {
            buf_add_str(out, STR("\n    "));
            column = 4;
        }
        buf_add_str(out, g.show);
        column += g.width;
        line = (struct str){line.ptr + g.len, line.len - g.len};
    }
    buf_addf(out, "%s\n", *style ? code(v, PLAIN) : "");
}

void view_approval(struct view *v, const char *question, struct str detail)
{
    AUTO(buf_done) struct buf out = BUF_INIT(TEXT_MAX);

    spinner_stop(&v->spinner);
    add_marked(v, &out, "? ", BOLD YELLOW, str_from(question));
    while (detail.len > 0) {
        const char *end = memchr(detail.ptr, '\n', detail.len);
        size_t n = end ? (size_t)(end - detail.ptr) : detail.len;

        add_verbatim(v, &out, (struct str){detail.ptr, n});
        n += end != NULL;
        detail = (struct str){detail.ptr + n, detail.len - n};
    }
    emit_lines(v, KIND_NOTE, buf_view(&out));
}

void view_ask(struct view *v, const char *choices)
{
    AUTO(buf_done) struct buf out = BUF_INIT(4096);

    buf_addf(&out, "%s%s%s", code(v, BOLD), choices, code(v, PLAIN));
    write_all(v, v->config.out, buf_view(&out));
}

void view_answered(struct view *v, struct str answer)
{
    AUTO(buf_done) struct buf out = BUF_INIT(4096);

    name_fit(&out, answer, 60);
    buf_add_char(&out, '\n');
    write_all(v, v->config.out, buf_view(&out));
}

/* 12345678 as 12,345,678. */
static void add_count(struct buf *out, int64_t n)
{
    char digits[24];
    size_t len;

    snprintf(digits, sizeof(digits), "%" PRId64, n < 0 ? 0 : n);
    len = strlen(digits);
    for (size_t i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0)
            buf_add_char(out, ',');
        buf_add_char(out, digits[i]);
    }
}

void view_usage(struct view *v, const struct view_usage *u)
{
    AUTO(buf_done) struct buf line = BUF_INIT(512);
    char took[24];

    add_count(&line, u->input_tokens);
    buf_add_str(&line, STR(" in"));
    if (u->cached_tokens > 0) {
        buf_add_str(&line, STR(" ("));
        add_count(&line, u->cached_tokens);
        buf_add_str(&line, STR(" cached)"));
    }
    buf_add_str(&line, STR(" · "));
    add_count(&line, u->output_tokens);
    buf_add_str(&line, STR(" out"));
    if (u->cost >= 0)
        buf_addf(&line, u->cost < 0.1 ? " · $%.4f" : " · $%.2f", u->cost);
    if (u->context_max > 0)
        buf_addf(&line, " · context %d %%", (int)(100 * (double)u->context / (double)u->context_max));
    if (u->ms >= 0)
        buf_addf(&line, " · %s", tl_took(took, u->ms));
    view_notice(v, buf_cstr(&line));
}
