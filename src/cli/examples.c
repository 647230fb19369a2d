/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two examples for every command, which its help ends with. They work when pasted: tests/cli/examples.sh runs each, with sessions
 * and files of these names, and fails for a command that has none.
 */
#include "cli/examples.h"

#include <string.h>

static const struct {
    const char *command, *first, *second;
} examples[] = {
    {"chat", "tidemark chat", "tidemark chat -p 'what does this directory hold?' --no-tools"},
    {"run", "tidemark run graph.json", "tidemark run graph.json --session tides --set word=ebb"},
    {"exec", "tidemark exec -- ./deploy.sh", "tidemark exec --session release --title 'Release 2.4' -- ./deploy.sh"},
    {"step", "tidemark step build --effect pure -- make -n",
     "tidemark step publish --effect once --timeout 5m -- ./publish.sh"},
    {"wait", "tidemark wait approve --kind approval --question 'Release it?'",
     "tidemark wait name --kind input --deadline 2d"},
    {"sleep", "tidemark sleep nap 10ms", "tidemark sleep overnight 8h"},
    {"set", "tidemark set version=2.4", "tidemark set 'hosts:=[\"a\",\"b\"]'"},
    {"get", "tidemark set version=2.4 && tidemark get version", "tidemark set n:=1 && tidemark get n --json"},
    {"checkpoint", "tidemark checkpoint", "tidemark checkpoint 'before the migration'"},
    {"resume", "tidemark resume deploy --input yes", "tidemark resume deploy --input no --reason 'after the holidays'"},
    {"cancel", "tidemark cancel deploy", "tidemark cancel deploy --reason 'wrong branch'"},
    {"why", "tidemark why deploy", "tidemark why deploy --json"},
    {"recover", "tidemark recover", "tidemark recover --run-due --auto-resume live"},
    {"serve", "tidemark serve --listen 127.0.0.1:0 --auto-resume live", "tidemark serve --listen off"},
    {"console", "tidemark console", "tidemark console --scopes read,answer"},
    {"tui", "tidemark tui", "tidemark tui deploy"},
    {"notify", "tidemark notify", "tidemark notify --json"},
    {"sessions new", "tidemark sessions new --title 'fix the build'", "tidemark sessions new --id build-7 --task-id 7"},
    {"sessions list", "tidemark sessions list", "tidemark sessions list --status waiting --ids"},
    {"sessions show", "tidemark sessions show deploy", "tidemark sessions show deploy --json"},
    {"sessions timeline", "tidemark sessions timeline deploy", "tidemark sessions timeline deploy --width 100"},
    {"sessions transcript", "tidemark sessions transcript notes",
     "tidemark sessions transcript notes --format markdown"},
    {"sessions send", "tidemark sessions send notes 'use the other branch'",
     "tidemark sessions send notes 'one more thing' --json"},
    {"sessions queue", "tidemark sessions queue notes", "tidemark sessions queue notes --json"},
    {"tasks list", "tidemark tasks list", "tidemark tasks list --state REVIEW --json"},
    {"tasks show", "tidemark tasks set 7 --state REVIEW && tidemark tasks show 7",
     "tidemark tasks set 7 --state REVIEW && tidemark tasks show 7 --json"},
    {"tasks set", "tidemark tasks set 7 --state REVIEW --title 'fix the build'", "tidemark tasks set 7 --state ''"},
    {"sessions resume", "tidemark sessions resume deploy --input yes",
     "tidemark sessions resume tides --dry-run --checkpoint \"$(tidemark sessions checkpoints tides --ids | tail -n 1)\""},
    {"sessions checkpoints", "tidemark sessions checkpoints notes", "tidemark sessions checkpoints notes --ids"},
    {"sessions inspect", "tidemark sessions inspect notes \"$(tidemark sessions checkpoints notes --ids | head -n 1)\"",
     "tidemark sessions inspect notes \"$(tidemark sessions checkpoints notes --ids | head -n 1)\" --json"},
    {"sessions checkpoint", "tidemark sessions checkpoint notes",
     "tidemark sessions checkpoint notes --description 'before the risky part'"},
    {"sessions checkpoint delete",
     "tidemark sessions checkpoint delete notes \"$(tidemark sessions checkpoints notes --ids | head -n 1)\"",
     "tidemark sessions checkpoint delete notes \"$(tidemark sessions checkpoints notes --ids | tail -n 1)\" --json"},
    {"sessions fork", "tidemark sessions fork notes", "tidemark sessions fork notes --at 2 --id notes-2"},
    {"sessions rollback", "tidemark sessions rollback notes --to 2",
     "tidemark sessions rollback notes --to 2 --reason 'wrong turn'"},
    {"sessions delete", "tidemark sessions delete notes", "tidemark sessions delete notes --json"},
    {"sessions prune", "tidemark sessions prune notes --keep 1", "tidemark sessions prune notes --keep 5 --json"},
    {"sessions verify", "tidemark sessions verify notes", "tidemark sessions verify --all"},
    {"sessions export", "tidemark sessions export notes", "tidemark sessions export notes --output copy.jsonl"},
    {"sessions import", "tidemark sessions import notes.jsonl", "tidemark sessions import <notes.jsonl"},
    {"sessions trust", "tidemark sessions trust deploy --show", "tidemark sessions trust deploy --yes"},
    {"log append", "tidemark log append notes --kind message.user --data '{\"turn\":1,\"content\":\"hello\"}'",
     "echo '{\"kind\":\"memory.set\",\"values\":{\"branch\":\"main\"}}' | tidemark log append notes -"},
    {"log show", "tidemark log show deploy", "tidemark log show deploy --kind run.waiting --json"},
    {"access create", "tidemark access create dashboard --scopes read",
     "tidemark access create phone --scopes read,answer --expires 30d --json"},
    {"access list", "tidemark access list", "tidemark access list --json"},
    {"access revoke", "tidemark access create lent --scopes read && tidemark access revoke lent",
     "tidemark access create lent --scopes read && tidemark access revoke lent --json"},
    {"access rotate", "tidemark access create ci --scopes write && tidemark access rotate ci",
     "tidemark access create cd --scopes write && tidemark access rotate cd --json"},
    {"token rotate", "tidemark token rotate deploy", "tidemark token rotate deploy --expires 2d"},
    {"store init", "tidemark store init", "tidemark --store files:sessions.files store init"},
    {"store info", "tidemark store info", "tidemark store info --json"},
    {"store check", "tidemark store check", "tidemark store check --rebuild"},
    {"store compact", "tidemark store compact", "tidemark store compact --json"},
    {"store copy", "tidemark store copy sqlite:here.db files:there.files",
     "tidemark store copy here.db backup.db --session notes"},
    {"store trust", "tidemark store trust --show", "tidemark store trust --yes"},
    {"config list", "tidemark config list", "tidemark config list --json"},
    {"config get", "tidemark config get max_turns", "tidemark config get max_turns --json"},
    {"config set", "tidemark config set max_turns 20", "tidemark config set notify '[\"/usr/local/bin/tell\"]'"},
    {"config check", "tidemark config check", "tidemark config check --json"},
    {"graph check", "tidemark graph check graph.json", "tidemark graph check graph.json --json"},
    {"graph show", "tidemark graph show graph.json", "tidemark graph show graph.json --mermaid"},
    {"graph diff", "tidemark graph diff graph.json new.json", "tidemark graph diff graph.json new.json --json"},
    {"graph import", "tidemark graph import agent.json", "tidemark graph import agent.json >imported.json"},
    {"graph schema", "tidemark graph schema", "tidemark graph schema >graph.schema.json"},
    {"state", "tidemark state notes --pretty", "tidemark state notes --at 2"},
    {"schema", "tidemark schema session", "tidemark schema --names"},
    {"doctor", "tidemark doctor", "tidemark doctor --all"},
    {"torture", "tidemark torture graph.json", "tidemark torture graph.json --kills 3 --seed 1"},
    {"completion", "tidemark completion bash >~/.tidemark-completion", "tidemark completion fish"},
    {"help", "tidemark help", "tidemark help sessions fork"},
    {"version", "tidemark version", "tidemark --version --json"},
};

const char *command_example(const struct command *c, int which)
{
    size_t group = c->group ? strlen(c->group) : 0;

    for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++) {
        const char *words = examples[i].command;

        if (group && (strncmp(words, c->group, group) != 0 || words[group] != ' '))
            continue;
        if (strcmp(group ? words + group + 1 : words, c->name) == 0)
            return which ? examples[i].second : examples[i].first;
    }
    return NULL;
}
