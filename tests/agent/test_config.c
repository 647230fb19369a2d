/* SPDX-License-Identifier: Apache-2.0 */
/* config.json: defaults, layers, what is refused and how it is said, changing one key, and where the provider's key is. */
#include <fcntl.h>
#include <sys/stat.h>

#include "kit.h"
#include "engine/config.h"

struct fixture {
    char dir[256], path[300], said[8192];
    size_t n;
    struct config *config;
};

static void on_line(void *arg, const char *line)
{
    struct fixture *f = arg;
    size_t at = strlen(f->said);

    snprintf(f->said + at, sizeof(f->said) - at, "%s\n", line);
    f->n++;
}

/* Nothing of the person's environment counts. */
static void clear_environment(void)
{
    char name[CONFIG_VARIABLE_SIZE];

    for (const struct config_key *k = config_keys; k->name; k++)
        if (config_variable(k, name))
            unsetenv(name);
    unsetenv("ANTHROPIC_API_KEY");
    unsetenv("OPENAI_API_KEY");
    unsetenv("TIDEMARK_API_KEY");
}

static int setup(void **state)
{
    struct fixture *f = mem_zero(sizeof *f);

    clear_environment();
    dir_make(f->dir);
    snprintf(f->path, sizeof f->path, "%s/config.json", f->dir);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    clear_environment();
    config_free(f->config);
    dir_remove(f->dir);
    free(f);
    return 0;
}

static void write_file(const char *path, const char *text, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

    assert_true(fd >= 0 && fchmod(fd, mode) == 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static void read_file(const char *path, char out[4096])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, out, 4095) : -1;

    assert_true(n >= 0);
    out[n] = '\0';
    close(fd);
}

static void open_with(struct fixture *f, const char *json)
{
    write_file(f->path, json, 0600);
    config_free(f->config);
    f->config = NULL;
    OK(config_open(f->path, on_line, f, &f->config, &err));
}

/* `key` NULL: because of the file itself, in this line (0: in none). */
static void assert_refused(struct fixture *f, const char *json, const char *key, int64_t line)
{
    struct tide_err err = {0};
    struct config *c = NULL;

    write_file(f->path, json, 0600);
    assert_int_equal(config_open(f->path, on_line, f, &c, &err), TIDE_INVALID);
    assert_string_equal(tide_subject_name(err.detail.subject), key ? "key" : "file");
    assert_string_equal(err.detail.name, key ? key : f->path);
    assert_int_equal(err.detail.position, line);
    assert_null(c);
}

/* ---- the table ---- */

static void every_key_has_help_and_a_default_that_it_would_accept(void **state)
{
    struct fixture *f = *state;
    size_t n = 0;

    for (const struct config_key *k = config_keys; k->name; k++, n++) {
        assert_true(k->help && *k->help);
        assert_ptr_equal(config_key_find(k->name), k);
        assert_int_equal((k->type == CONFIG_WORD || k->type == CONFIG_JSON), k->words != NULL);
        if (k->fallback) {
            char json[200];

            snprintf(json, sizeof json, "{\"%s\": %s}", k->name, k->fallback);
            open_with(f, json);
            assert_string_equal(config_origin(f->config, k->name), "file");
        }
    }
    assert_true(n > 30);
}

static void a_missing_file_is_all_defaults(void **state)
{
    struct fixture *f = *state;

    OK(config_open(f->path, on_line, f, &f->config, &err));
    assert_string_equal(config_text(f->config, "provider"), "anthropic");
    assert_null(config_text(f->config, "model"));
    assert_int_equal(config_json(f->config, "model").len, 0);
    assert_int_equal(config_int(f->config, "max_turns"), 50);
    assert_int_equal(config_int(f->config, "max_retries"), 3);
    assert_int_equal(config_int(f->config, "retry_base_delay_ms"), 500);
    assert_int_equal(config_int(f->config, "max_context_tokens"), 128000);
    assert_int_equal(config_int(f->config, "max_tool_result_chars"), 8000);
    assert_true(config_number(f->config, "max_cost") == 0);
    assert_true(str_eq(config_json(f->config, "hooks"), STR("[]")));
    assert_string_equal(config_origin(f->config, "max_turns"), "default");
    assert_int_equal(f->n, 0);
}

static void an_empty_file_is_all_defaults(void **state)
{
    struct fixture *f = *state;

    open_with(f, " \n");
    assert_int_equal(config_int(f->config, "max_retries"), 3);
    open_with(f, "{\"model\": \"m\", \"max_turns\": null, \"base_url\": \"\"}");
    assert_int_equal(config_int(f->config, "max_turns"), 50);
    assert_null(config_text(f->config, "base_url"));
    assert_string_equal(config_text(f->config, "model"), "m");
}

/* ---- layers ---- */

static void the_environment_wins_over_the_file_and_the_file_over_the_default(void **state)
{
    struct fixture *f = *state;

    setenv("TIDEMARK_MAX_TURNS", "9", 1);
    setenv("TIDEMARK_AUTO_APPROVE_TOOLS", "true", 1);
    setenv("TIDEMARK_MODEL", "true", 1); /* text stands for itself */
    setenv("TIDEMARK_MAX_RETRIES", "", 1);
    open_with(f, "{\"max_turns\": 8, \"max_retries\": 7, \"max_cost\": 1.25}");
    assert_int_equal(config_int(f->config, "max_turns"), 9);
    assert_string_equal(config_origin(f->config, "max_turns"), "environment");
    assert_int_equal(config_int(f->config, "max_retries"), 7);
    assert_string_equal(config_origin(f->config, "max_retries"), "file");
    assert_true(config_bool(f->config, "auto_approve_tools"));
    assert_string_equal(config_text(f->config, "model"), "true");
    assert_true(config_number(f->config, "max_cost") == 1.25);
}

static void a_variable_that_is_wrong_is_named(void **state)
{
    struct fixture *f = *state;
    struct config *c = NULL;

    setenv("TIDEMARK_MAX_TURNS", "many", 1);
    ABOUT(TIDE_INVALID, TIDE_SUBJECT_KEY, "max_turns", config_open(f->path, NULL, NULL, &c, &err));
    setenv("TIDEMARK_MAX_TURNS", "5", 1);
    setenv("TIDEMARK_HOOKS", "[", 1);
    GIVES(TIDE_INVALID, config_open(f->path, NULL, NULL, &c, &err));
}

static void the_variable_of_the_key_is_not_a_reference_to_one(void **state)
{
    struct fixture *f = *state;

    setenv("TIDEMARK_API_KEY", "secret", 1);
    open_with(f, "{}");
    assert_null(config_text(f->config, "api_key"));
}

static void db_path_is_another_name_of_the_store(void **state)
{
    struct fixture *f = *state;

    open_with(f, "{\"db_path\": \"/x.db\"}");
    assert_string_equal(config_text(f->config, "store"), "/x.db");
    assert_int_equal(f->n, 0);
    assert_refused(f, "{\"db_path\": \"/x.db\", \"store\": \"/y.db\"}", "store", 0);
}

/* ---- what is refused ---- */

static void unknown_keys_are_warned_about_with_the_nearest(void **state)
{
    struct fixture *f = *state;

    open_with(f, "{\"max_turn\": 8, \"zzzzzzzz\": 1, \"modle\": \"x\"}");
    assert_int_equal(f->n, 3);
    assert_non_null(strstr(f->said, "unknown key 'max_turn': did you mean 'max_turns'?"));
    assert_non_null(strstr(f->said, "unknown key 'modle': did you mean 'model'?"));
    assert_non_null(strstr(f->said, "unknown key 'zzzzzzzz'"));
}

static void a_value_of_the_wrong_kind_is_refused_by_name(void **state)
{
    static const struct {
        const char *json, *key;
        int64_t line;
    } rows[] = {
        {"{\"max_turns\": \"8\"}", "max_turns", 0},
        {"{\"max_turns\": 0}", "max_turns", 0},
        {"{\"max_turns\": 1.5}", "max_turns", 0},
        {"{\"max_turns\": 99999999999999999999}", "max_turns", 0},
        {"{\"max_tokens\": -1}", "max_tokens", 0},
        {"{\"max_cost\": -0.5}", "max_cost", 0},
        {"{\"max_cost\": 1e999}", "max_cost", 0},
        {"{\"provider\": \"antropic\"}", "provider", 0},
        {"{\"provider\": \"\"}", "provider", 0},
        {"{\"model\": 7}", "model", 0},
        {"{\"model\": \"a\\u0000b\"}", "model", 0},
        {"{\"hooks\": {}}", "hooks", 0},
        {"{\"prices\": []}", "prices", 0},
        {"{\"prices\": {\"m\": 3}}", "prices", 0},
        {"{\"prices\": {\"m\": {\"inptu\": 3}}}", "prices", 0},
        {"{\"prices\": {\"m\": {\"input\": -3}}}", "prices", 0},
        {"{\"auto_approve_tools\": \"all\"}", "auto_approve_tools", 0},
        {"{\"auto_approve_tools\": [7]}", "auto_approve_tools", 0},
        {"{\"base_url\": \"example.com\"}", "base_url", 0},
        {"{\"base_url\": \"http:///x\"}", "base_url", 0},
        {"{\"base_url\": \"http://a b\"}", "base_url", 0},
        {"{\"sweep_interval\": \"often\"}", "sweep_interval", 0},
        {"{\"sweep_interval\": \"30\"}", "sweep_interval", 0},
        {"{\"max_turns\": 8,}", NULL, 1},
        {"{\n\"max_turns\": 8\n\"model\": 7}", NULL, 3},
        {"[]", NULL, 0},
        {"model = x", NULL, 1},
        {"{\"model\": 1, \"model\": 2}", NULL, 1},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_refused(f, rows[i].json, rows[i].key, rows[i].line);
    open_with(f, "{\"sweep_interval\": \"1h30m\", \"base_url\": \"http://[::1]:8080/v1/@x\"}");
    open_with(f,
              "{\"sweep_interval\": \"0\", \"prices\": {\"m*\": {\"input\": 3, \"output\": 1.5e1, \"cached\": 0.3}}}");
}

static void a_secret_in_the_file_is_refused_and_not_repeated(void **state)
{
    static const char *const files[] = {"{\"api_key\": \"sk-ant-SECRET\"}", "{\"api_key\": [\"SECRET\"]}",
                                        "{\"api_key\": \"env:\"}", "{\"base_url\": \"https://me:SECRET@host/\"}"};
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        struct config *c = NULL;
        struct tide_err err = {0};

        write_file(f->path, files[i], 0600);
        assert_int_equal(config_open(f->path, NULL, NULL, &c, &err), TIDE_INVALID);
        assert_null(strstr(err.msg, "SECRET"));
        assert_non_null(strstr(err.msg, "key"));
    }
    ABOUT(TIDE_INVALID, TIDE_SUBJECT_KEY, "api_key", config_set(f->path, "api_key", "sk-1", &err));
}

static void a_file_that_cannot_be_read_is_an_error(void **state)
{
    struct fixture *f = *state;
    struct config *c = NULL;
    AUTO(buf_done) struct buf big = BUF_INIT(4 << 20);

    ABOUT(TIDE_DENIED, TIDE_SUBJECT_FILE, f->dir, config_open(f->dir, NULL, NULL, &c, &err));
    for (int i = 0; i < 1 << 17; i++)
        buf_add_str(&big, STR("          "));
    write_file(f->path, buf_cstr(&big), 0600);
    ABOUT(TIDE_TOO_BIG, TIDE_SUBJECT_FILE, f->path, config_open(f->path, NULL, NULL, &c, &err));
}

static void a_check_tells_every_problem_at_once(void **state)
{
    struct fixture *f = *state;

    setenv("TIDEMARK_LOG_LEVEL", "loud", 1);
    write_file(f->path, "{\"max_turns\": 0, \"modle\": 1, \"model\": \"m\", \"max_retries\": \"x\"}", 0600);
    f->config = config_check(f->path, on_line, f);
    assert_int_equal(f->n, 4);
    assert_non_null(strstr(f->said, "max_turns: must"));
    assert_non_null(strstr(f->said, "did you mean 'model'"));
    assert_non_null(strstr(f->said, "max_retries: must"));
    assert_non_null(strstr(f->said, "TIDEMARK_LOG_LEVEL: must be one of: error warn info debug, not \"loud\""));
    assert_string_equal(config_text(f->config, "model"), "m");
    assert_int_equal(config_int(f->config, "max_turns"), 50);
}

/* ---- changing one key ---- */

static void a_set_keeps_all_else_and_its_order(void **state)
{
    struct fixture *f = *state;
    char got[4096];
    struct stat st;

    write_file(f->path, "{\"zeta\":[1, 2],\"max_turns\":5,\n\"model\":\"a\\u00e4\", \"cost\":1.50}", 0644);
    OK(config_set(f->path, "max_turns", "7", &err));
    OK(config_set(f->path, "max_retries", "2", &err));
    read_file(f->path, got);
    assert_string_equal(got,
                        "{\n  \"zeta\": [1, 2],\n  \"max_turns\": 7,\n  \"model\": \"a\\u00e4\",\n  \"cost\": 1.50,\n"
                        "  \"max_retries\": 2\n}\n");
    assert_int_equal(stat(f->path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    OK(config_set(f->path, "zeta", NULL, &err));
    OK(config_set(f->path, "max_turns", NULL, &err));
    OK(config_set(f->path, "cost", NULL, &err));
    OK(config_set(f->path, "max_retries", NULL, &err));
    OK(config_set(f->path, "model", NULL, &err));
    OK(config_set(f->path, "model", NULL, &err));
    read_file(f->path, got);
    assert_string_equal(got, "{}\n");
}

static void a_set_makes_file_and_directories(void **state)
{
    struct fixture *f = *state;
    char path[400];
    struct stat st;

    snprintf(path, sizeof path, "%s/a/b/config.json", f->dir);
    OK(config_set(path, "system_prompt", "say \"hi\"\n", &err));
    OK(config_open(path, NULL, NULL, &f->config, &err));
    assert_string_equal(config_text(f->config, "system_prompt"), "say \"hi\"\n");
    *strrchr(path, '/') = '\0';
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
}

static void a_set_is_checked_first_and_changes_nothing_when_refused(void **state)
{
    struct fixture *f = *state;
    char got[4096];

    write_file(f->path, "{\"max_turns\":5}", 0600);
    ABOUT(TIDE_INVALID, TIDE_SUBJECT_KEY, "max_turns", config_set(f->path, "max_turns", "x", &err));
    ABOUT(TIDE_INVALID, TIDE_SUBJECT_KEY, "maxturns", config_set(f->path, "maxturns", "7", &err));
    GIVES(TIDE_INVALID, config_set(f->path, "hooks", "[", &err));
    ABOUT(TIDE_INVALID, TIDE_SUBJECT_KEY, "model", config_set(f->path, "model", "\xff", &err));
    ABOUT(TIDE_INVALID, TIDE_SUBJECT_FILE, f->dir, config_set(f->dir, "model", "x", &err));
    read_file(f->path, got);
    assert_string_equal(got, "{\"max_turns\":5}");
    write_file(f->path, "{\"max_turns\":5", 0600);
    ABOUT(TIDE_INVALID, TIDE_SUBJECT_FILE, f->path, config_set(f->path, "model", "m", &err));
    read_file(f->path, got);
    assert_string_equal(got, "{\"max_turns\":5");
}

static void a_wrong_value_can_be_put_right(void **state)
{
    struct fixture *f = *state;

    write_file(f->path, "{\"max_turns\":0,\"max_retries\":\"x\"}", 0600);
    OK(config_set(f->path, "max_turns", "5", &err));
    OK(config_set(f->path, "max_retries", NULL, &err));
    OK(config_open(f->path, NULL, NULL, &f->config, &err));
    assert_int_equal(config_int(f->config, "max_turns"), 5);
}

static void a_link_is_followed_and_stays_a_link(void **state)
{
    struct fixture *f = *state;
    char link[300], got[4096];
    struct stat st;

    snprintf(link, sizeof link, "%s/link", f->dir);
    assert_int_equal(symlink("config.json", link), 0);
    ABOUT(TIDE_NOT_FOUND, TIDE_SUBJECT_FILE, link, config_set(link, "max_turns", "7", &err));
    write_file(f->path, "{}", 0600);
    OK(config_set(link, "max_turns", "7", &err));
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    read_file(f->path, got);
    assert_string_equal(got, "{\n  \"max_turns\": 7\n}\n");
}

static void a_set_through_an_alias_changes_what_is_there(void **state)
{
    struct fixture *f = *state;
    char got[4096];

    write_file(f->path, "{\"db_path\":\"/x\"}", 0600);
    OK(config_set(f->path, "store", "/y", &err));
    read_file(f->path, got);
    assert_string_equal(got, "{\n  \"db_path\": \"/y\"\n}\n");
}

static void nothing_is_left_beside_the_file(void **state)
{
    struct fixture *f = *state;
    char command[400];

    OK(config_set(f->path, "max_turns", "7", &err));
    GIVES(TIDE_INVALID, config_set(f->path, "max_turns", "x", &err));
    snprintf(command, sizeof command, "test \"$(ls -A '%s')\" = config.json", f->dir);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): our own mkdtemp name */
}

/* ---- the provider's key ---- */

static void assert_key(const struct fixture *f, const char *provider, const char *want)
{
    AUTO(buf_done) struct buf key = BUF_INIT(1 << 16);

    OK(config_api_key(f->config, provider, &key, &err));
    assert_string_equal(buf_cstr(&key), want);
}

static void assert_no_key(const struct fixture *f, enum tide_code code)
{
    AUTO(buf_done) struct buf key = BUF_INIT(1 << 16);

    ABOUT(code, TIDE_SUBJECT_KEY, "api_key", config_api_key(f->config, "anthropic", &key, &err));
    assert_int_equal(key.len, 0);
}

static void without_a_reference_the_usual_variables_count(void **state)
{
    struct fixture *f = *state;

    open_with(f, "{}");
    assert_key(f, "anthropic", "");
    setenv("TIDEMARK_API_KEY", " t\n", 1);
    assert_key(f, "anthropic", "t");
    assert_key(f, "openai", "t");
    assert_key(f, "script", "");
    setenv("ANTHROPIC_API_KEY", "a", 1);
    setenv("OPENAI_API_KEY", "o", 1);
    assert_key(f, "anthropic", "a");
    assert_key(f, "openai", "o");
}

static void a_variable_that_is_named_must_be_there(void **state)
{
    struct fixture *f = *state;

    setenv("ANTHROPIC_API_KEY", "a", 1);
    open_with(f, "{\"api_key\": \"env:TIDE_TEST_KEY\"}");
    unsetenv("TIDE_TEST_KEY");
    assert_no_key(f, TIDE_NOT_FOUND);
    setenv("TIDE_TEST_KEY", " \n", 1);
    assert_no_key(f, TIDE_NOT_FOUND);
    setenv("TIDE_TEST_KEY", "two words", 1);
    assert_no_key(f, TIDE_INVALID);
    setenv("TIDE_TEST_KEY", "k1", 1);
    assert_key(f, "anthropic", "k1");
    unsetenv("TIDE_TEST_KEY");
}

static void a_key_file_must_not_be_open_to_all(void **state)
{
    struct fixture *f = *state;
    char path[300];

    snprintf(path, sizeof path, "%s/key", f->dir);
    open_with(f, "{\"api_key\": \"file:key\"}"); /* beside the config */
    assert_no_key(f, TIDE_NOT_FOUND);
    write_file(path, "\n k2 \n", 0644);
    assert_no_key(f, TIDE_DENIED);
    write_file(path, "\n k2 \n", 0640);
    assert_key(f, "openai", "k2");
    write_file(path, "k2\nk3\n", 0600);
    assert_no_key(f, TIDE_INVALID);
    write_file(path, "", 0600);
    assert_no_key(f, TIDE_NOT_FOUND);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_no_key(f, TIDE_INVALID);
}

static void a_key_file_may_be_in_the_home(void **state)
{
    struct fixture *f = *state;
    AUTO(mem_freep) char *home = getenv("HOME") ? mem_dup(str_from(getenv("HOME"))) : NULL;
    char path[300];

    snprintf(path, sizeof path, "%s/key", f->dir);
    write_file(path, "k3", 0600);
    setenv("HOME", f->dir, 1);
    snprintf(path, sizeof path, "%s/elsewhere", f->dir);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(f->path, sizeof f->path, "%.256s/elsewhere/config.json", f->dir);
    open_with(f, "{\"api_key\": \"file:~/key\"}");
    assert_key(f, "anthropic", "k3");
    if (home)
        setenv("HOME", home, 1);
}

/* A secret-tool of our own: what it is called with, and what it says. */
static void a_keychain_is_asked_through_its_program(void **state)
{
    struct fixture *f = *state;
    AUTO(mem_freep) char *path = mem_dup(str_from(getenv("PATH")));
    char tool[300], text[600], got[4096];

    open_with(f, "{\"api_key\": \"keychain:work $(x)\"}");
    setenv("PATH", f->dir, 1);
    assert_no_key(f, TIDE_NOT_FOUND);
    snprintf(tool, sizeof tool, "%s/secret-tool", f->dir);
    snprintf(text, sizeof text, "#!/bin/sh\nprintf '%%s|' \"$@\" >'%s/asked'\necho k4\n", f->dir);
    write_file(tool, text, 0700);
    assert_key(f, "anthropic", "k4");
    snprintf(text, sizeof text, "%s/asked", f->dir);
    read_file(text, got);
    assert_string_equal(got, "lookup|service|tidemark|account|work $(x)|");
    write_file(tool, "#!/bin/sh\nexit 1\n", 0700);
    assert_no_key(f, TIDE_NOT_FOUND);
    write_file(tool, "#!/bin/sh\n", 0700);
    assert_no_key(f, TIDE_NOT_FOUND);
    open_with(f, "{\"api_key\": \"keychain:--help\"}");
    assert_no_key(f, TIDE_INVALID);
    setenv("PATH", path, 1);
}

#define CONFIG_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CONFIG_TEST(every_key_has_help_and_a_default_that_it_would_accept),
        CONFIG_TEST(a_missing_file_is_all_defaults),
        CONFIG_TEST(an_empty_file_is_all_defaults),
        CONFIG_TEST(the_environment_wins_over_the_file_and_the_file_over_the_default),
        CONFIG_TEST(a_variable_that_is_wrong_is_named),
        CONFIG_TEST(the_variable_of_the_key_is_not_a_reference_to_one),
        CONFIG_TEST(db_path_is_another_name_of_the_store),
        CONFIG_TEST(unknown_keys_are_warned_about_with_the_nearest),
        CONFIG_TEST(a_value_of_the_wrong_kind_is_refused_by_name),
        CONFIG_TEST(a_secret_in_the_file_is_refused_and_not_repeated),
        CONFIG_TEST(a_file_that_cannot_be_read_is_an_error),
        CONFIG_TEST(a_check_tells_every_problem_at_once),
        CONFIG_TEST(a_set_keeps_all_else_and_its_order),
        CONFIG_TEST(a_set_makes_file_and_directories),
        CONFIG_TEST(a_set_is_checked_first_and_changes_nothing_when_refused),
        CONFIG_TEST(a_wrong_value_can_be_put_right),
        CONFIG_TEST(a_link_is_followed_and_stays_a_link),
        CONFIG_TEST(a_set_through_an_alias_changes_what_is_there),
        CONFIG_TEST(nothing_is_left_beside_the_file),
        CONFIG_TEST(without_a_reference_the_usual_variables_count),
        CONFIG_TEST(a_variable_that_is_named_must_be_there),
        CONFIG_TEST(a_key_file_must_not_be_open_to_all),
        CONFIG_TEST(a_key_file_may_be_in_the_home),
        CONFIG_TEST(a_keychain_is_asked_through_its_program),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
