/** `orch completion` and `orch __complete`: the shell scripts, and the candidates they ask for. */

import type { ApiClient } from '../../client/api-client.js';
import { profilesPath } from '../../client/operator-files.js';
import { loadProfiles } from '../../client/profiles.js';
import { Fault } from '../../kernel/fault.js';
import type { Context } from '../context.js';
import { argument, type Command, defineCommand, optionalList } from '../define-command.js';
import { entryOf, findCommand, groupOf, wordsBelow } from '../find-command.js';
import { agentHandle } from '../format.js';
import { optionsBeside } from '../global-options.js';
import { allAgents } from '../list-pages.js';
import { resolveNode } from '../nodes/resolve-node.js';
import { flagOf, type LiveValue, listWords, type Option, type Options } from '../options.js';
import { linesOf, textLines } from '../outcome.js';
import { rolloutSubject } from '../runs/rollout-record.js';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;

export type Shell = (typeof SHELLS)[number];

/** `orch completion`. */
export const printScript = defineCommand({
  examples: [
    'source <(orch completion bash)',
    'orch completion zsh > ~/.zsh/completions/_orch',
    'orch completion fish > ~/.config/fish/completions/orch.fish',
  ],
  detail: ['Completes commands, flags, and the names of agents, modules, operators, profiles and operations.'],
  access: 'local',
  args: { shell: { ...argument('SHELL', listWords(SHELLS)), choices: SHELLS } },
  run: async (_context, { shell }) => {
    const known = SHELLS.find((candidate) => candidate === shell);
    if (known === undefined)
      throw new Fault('usage', `there is no completion for "${shell}"; there is for ${listWords(SHELLS)}`);
    return { view: linesOf(textLines(shellScript(known))) };
  },
});

/** `orch __complete`. */
export const complete = defineCommand({
  examples: ['orch __complete -- agents show w'],
  detail: [
    'The last word is the one to complete. Each line is a candidate, a space and what it means; ":file" stands for files.',
  ],
  access: 'local',
  connection: true,
  // An empty last word is valid: nothing of it is typed yet.
  args: {
    words: {
      ...optionalList('WORD', 'the words of the command line so far'),
      parse: (given: readonly string[]) => given,
    },
  },
  run: async (context, { words }) => {
    const found = await candidates(context, words);
    return {
      body: found,
      names: found.map(({ word }) => word),
      view: linesOf(found.map(({ word, summary }) => `${word} ${summary}`.trim())),
    };
  },
});

export interface Candidate {
  readonly word: string;
  readonly summary: string;
}

/** Candidates that a shell reads as a single plain word. Names may be hostile. */
const PLAIN = /^[\p{L}\p{N}._:@/=+,-]+$/u;

export async function candidates(context: Context, words: readonly string[]): Promise<readonly Candidate[]> {
  const current = words.at(-1) ?? '';
  const [, flag, typed] = /^(--[a-z-]+)=(.*)$/s.exec(current) ?? [];
  if (flag !== undefined && typed !== undefined) {
    const values = await candidates(context, [...words.slice(0, -1), flag, typed]);
    return values.map(({ word, summary }) => ({ word: word === ':file' ? word : `${flag}=${word}`, summary }));
  }
  const all = await allCandidates(context, words.slice(0, -1), current);
  return all.filter(({ word }) => word === ':file' || (PLAIN.test(word) && word.startsWith(current)));
}

async function allCandidates(
  context: Context,
  before: readonly string[],
  current: string,
): Promise<readonly Candidate[]> {
  const found = findCommand(before);
  const path = found.kind === 'command' ? found.entry.path : found.path;
  const atWords = before.filter((word) => !word.startsWith('-')).join(' ');
  // A group offers its own words beside the arguments of its default command.
  const below = atWords === path || groupOf(atWords) ? wordsBelow(atWords) : [];
  const subcommands = below.map((word) => describeWord(atWords === '' ? word : `${atWords} ${word}`, word));
  if (found.kind === 'group') {
    const pending = optionBefore(before.at(-1), optionsBeside({ connection: true, consent: false }));
    if (pending) {
      const { completes: live, choices, many } = pending;
      return valueCandidates(context, { live, choices, isList: many, given: [], current });
    }
    return current.startsWith('-')
      ? optionCandidates(optionsBeside({ connection: true, consent: false }))
      : subcommands;
  }
  const command = await found.entry.load();
  const options = optionsOf(command);
  const pending = optionBefore(before.at(-1), options);
  const given = wordsOf(found.rest, options);
  if (pending) {
    const { completes: live, choices, many } = pending;
    return valueCandidates(context, { live, choices, isList: many, given, current });
  }
  if (current.startsWith('-')) return optionCandidates(options);
  const argument = nextArgument(command, found.rest, options);
  return [
    ...subcommands,
    ...(await valueCandidates(context, {
      live: argument?.completes ?? null,
      choices: argument?.choices ?? null,
      isList: false,
      given,
      current,
    })),
  ];
}

const describeWord = (path: string, word: string): Candidate => ({
  word,
  summary: groupOf(path)?.summary ?? entryOf(path)?.summary ?? '',
});

const optionsOf = (command: Command): Options => ({ ...command.options, ...optionsBeside(command) });

const optionCandidates = (options: Options): readonly Candidate[] =>
  Object.entries(options).map(([key, option]) => ({ word: flagOf(key, option), summary: option.summary }));

/** Returns the option whose value is expected after `word`, or null. */
function optionBefore(word: string | undefined, options: Options): Option<unknown> | null {
  if (word === undefined) return null;
  for (const [key, option] of Object.entries(options)) {
    const spelled = word === flagOf(key, option) || (option.short !== null && word === `-${option.short}`);
    if (spelled && option.placeholder !== null && option.bare === null) return option;
  }
  return null;
}

/** Returns the next positional argument. */
function nextArgument({ args }: Command, rest: readonly string[], options: Options) {
  const given = wordsOf(rest, options).length;
  const all = Object.values(args).filter(({ dashed }) => !dashed);
  if (all.length < Object.keys(args).length && rest.includes('--')) return undefined;
  const last = all.at(-1);
  return all[given] ?? (last?.many ? last : undefined);
}

/** Returns the positional words among the words after a command. */
const wordsOf = (rest: readonly string[], options: Options): readonly string[] =>
  rest.filter((word, index) => !word.startsWith('-') && optionBefore(rest[index - 1], options) === null);

interface Wanted {
  readonly live: LiveValue | null;
  readonly choices: readonly string[] | null;
  /** True if the choices may be joined with commas. */
  readonly isList: boolean;
  /** Positional words so far. */
  readonly given: readonly string[];
  /** The word so far. */
  readonly current: string;
}

async function valueCandidates(context: Context, wanted: Wanted): Promise<readonly Candidate[]> {
  const { live, choices, isList, given, current } = wanted;
  if (choices) {
    const before = isList ? beforeLast(current) : '';
    const used = before.split(',');
    return choices.filter((word) => !used.includes(word)).map((word) => ({ word: before + word, summary: '' }));
  }
  if (live === 'file') return [{ word: ':file', summary: '' }];
  if (live === 'command-or-topic') return helpCandidates(given.join(' '));
  return live === null ? [] : liveValues(context, live, given, current);
}

/** Returns the words that may follow in `orch help`: those of commands, and at first also the topics. */
async function helpCandidates(path: string): Promise<readonly Candidate[]> {
  const words = wordsBelow(path).map((word) => describeWord(path === '' ? word : `${path} ${word}`, word));
  if (path !== '') return words;
  const { TOPICS } = await import('../help/topics.js');
  return [...words, ...TOPICS.map(({ name, summary }) => ({ word: name, summary }))];
}

/** Returns a list up to its last comma, which the last item follows. */
const beforeLast = (list: string): string => list.slice(0, list.lastIndexOf(',') + 1);

type Live = Exclude<LiveValue, 'file' | 'profile' | 'command-or-topic'>;

/** Milliseconds that a completion may take. */
const PATIENCE = 2000;

/** Returns the candidates; `given` holds the positional words so far, and `current` the word to complete. */
type Source = (
  api: ApiClient,
  signal: AbortSignal,
  given: readonly string[],
  current: string,
) => Promise<readonly Candidate[]>;

const SOURCES: Readonly<Record<Live, Source>> = {
  node: async (api, signal) =>
    (await allAgents(api, { signal })).map((agent) => ({
      word: agentHandle(agent),
      summary: `${agent.status} ${agent.initial_hostname}`,
    })),
  tag: async (api, signal, _given, current) => tagCandidates((await api.call('listTags', { signal })).tags, current),
  selector: async (api, signal, _given, current) => {
    const before = beforeLast(current);
    const { tags } = await api.call('listTags', { signal });
    const all = { ...ATTRIBUTE_VALUES, ...tags };
    return tagCandidates(all, current.slice(before.length)).map(({ word, summary }) => ({
      word: before + word,
      summary,
    }));
  },
  module: async (api, signal) =>
    (await api.call('listModules', { signal })).map(({ name }) => ({ word: name, summary: 'module' })),
  values: async (api, signal) =>
    (await api.call('listValueSets', { signal })).map(({ name }) => ({ word: name, summary: 'value set' })),
  assignment: async (api, signal) =>
    (await api.call('listAssignments', { signal })).map(({ name, selector }) => ({ word: name, summary: selector })),
  operator: async (api, signal) =>
    (await api.call('listOperators', { signal })).map(({ username, role }) => ({ word: username, summary: role })),
  secret: async (api, signal) =>
    (await api.call('listSecrets', { signal })).map(({ name }) => ({ word: name, summary: 'secret' })),
  channel: async (api, signal) =>
    (await api.call('listChannels', { signal })).map(({ name, channel_type }) => ({
      word: name,
      summary: channel_type,
    })),
  notification: async (api, signal) =>
    (await api.call('listNotifications', { query: { unread: true }, signal })).notifications.map(({ id, summary }) => ({
      word: id,
      summary,
    })),
  operation: async (api, signal) =>
    (await api.call('listOperations', { signal })).operations.map(({ operation_id, status, node_name }) => ({
      word: operation_id,
      summary: `${status} ${node_name ?? ''}`,
    })),
  rollout: async (api, signal) =>
    (await api.call('listRollouts', { signal })).rollouts.map((rollout) => ({
      word: rollout.rollout_id,
      summary: `${rollout.state} ${rolloutSubject(rollout)}`,
    })),
  'operation-of-node': async (api, signal, [node]) => {
    if (node === undefined) return SOURCES.operation(api, signal, [], '');
    const { node_id } = await resolveNode(api, node, { signal });
    const { operations } = await api.call('listAgentOperations', { params: { node_id }, signal });
    return operations.map(({ operation_id, status, modules }) => ({
      word: operation_id,
      summary: `${status} ${modules.join(' ')}`,
    }));
  },
  terminal: async (api, signal) =>
    (await api.call('listTerminals', { signal })).map(({ session_id, status, operator, node_name }) => ({
      word: session_id,
      summary: `${status} ${operator} on ${node_name ?? ''}`,
    })),
  window: async (api, signal) =>
    (await api.call('listMaintenanceWindows', { signal })).map(({ id, status, reason }) => ({
      word: id,
      summary: `${status} ${reason}`,
    })),
  snooze: async (api, signal) =>
    (await api.call('listDriftExcuses', { signal })).snoozes.map(({ snooze_id, reason }) => ({
      word: snooze_id,
      summary: reason,
    })),
  drift: async (api, signal) =>
    (await api.call('listDrift', { signal })).records.map(({ drift_id, status }) => ({
      word: drift_id,
      summary: status,
    })),
};

/** Attributes that selectors test, with their usual values. */
const ATTRIBUTE_VALUES: Readonly<Record<string, readonly string[]>> = {
  arch: [],
  distro: [],
  init_system: [],
  platform: ['linux', 'macos', 'windows'],
  version: [],
};

/** Returns the keys, or after `KEY=` the values of the key. */
function tagCandidates(tags: Readonly<Record<string, readonly string[]>>, current: string): readonly Candidate[] {
  const at = current.indexOf('=');
  if (at < 0) {
    return Object.entries(tags).map(([key, values]) => {
      const named = values.filter((value) => value !== '');
      // A key without values is a complete term.
      const isBare = named.length === 0 && values.length > 0;
      return { word: isBare ? key : `${key}=`, summary: named.slice(0, 3).join(' ') };
    });
  }
  const key = current.slice(0, at);
  const values = Object.hasOwn(tags, key) ? (tags[key] ?? []) : [];
  return values.filter((value) => value !== '').map((value) => ({ word: `${key}=${value}`, summary: '' }));
}

/** Returns the candidates of a kind of value. Returns none on failure, because a completion must not print errors. */
export async function liveValues(
  context: Context,
  live: Exclude<LiveValue, 'file' | 'command-or-topic'>,
  given: readonly string[] = [],
  current = '',
): Promise<readonly Candidate[]> {
  try {
    if (live === 'profile') {
      const { byName } = await loadProfiles(profilesPath(context.env));
      return Object.entries(byName).map(([word, { url }]) => ({ word, summary: url }));
    }
    return await SOURCES[live](await context.api(), AbortSignal.timeout(PATIENCE), given, current);
  } catch {
    return [];
  }
}

export const shellScript = (shell: Shell): string => SCRIPTS[shell];

const bash = `# bash completion of orch
_orch() {
  local cur words word line joined="" whole IFS=$'\\n'
  # bash splits words at "=" and ":" and replaces only what follows, so they are joined where no space stood between.
  words=()
  local rest="\${COMP_LINE:0:COMP_POINT}"
  for word in "\${COMP_WORDS[@]:0:COMP_CWORD+1}"; do
    if [ -n "$joined" ] && [ "\${rest#[[:space:]]}" = "$rest" ]; then
      words[\${#words[@]}-1]+="$word"
    else
      words+=("$word")
    fi
    joined=yes
    rest="\${rest#"\${rest%%[![:space:]]*}"}"
    rest="\${rest#"$word"}"
  done
  cur="\${COMP_WORDS[COMP_CWORD]}"
  case "$cur" in [=:]) cur="" ;; esac
  whole="\${words[\${#words[@]}-1]}"
  local kept="\${whole%"$cur"}"
  COMPREPLY=()
  for line in $(orch __complete --no-color -- "\${words[@]:1}" 2>/dev/null </dev/null); do
    if [ "$line" = ":file" ]; then
      compopt -o filenames 2>/dev/null
      COMPREPLY+=($(compgen -f -- "$cur"))
    else
      word="\${line%% *}"
      case "$word" in *=) compopt -o nospace 2>/dev/null ;; esac
      COMPREPLY+=("\${word#"$kept"}")
    fi
  done
}
complete -F _orch orch
`;

const zsh = `#compdef orch
# zsh completion of orch
_orch() {
  local -a described open
  local line files=0
  for line in "\${(@f)$(orch __complete --no-color -- "\${words[@]:1:$((CURRENT-1))}" 2>/dev/null </dev/null)}"; do
    if [[ "$line" == ":file" ]]; then
      files=1
    elif [[ "\${line%% *}" == *= ]]; then
      open+=("\${\${line%% *}//:/\\\\:}:\${line#* }")
    elif [[ -n "$line" ]]; then
      described+=("\${\${line%% *}//:/\\\\:}:\${line#* }")
    fi
  done
  (( \${#described} )) && _describe -V orch described
  (( \${#open} )) && _describe -V orch open -S ''
  (( files )) && _files
}
if [ "$funcstack[1]" = "_orch" ]; then
  _orch "$@"
else
  compdef _orch orch
fi
`;

const fish = `# fish completion of orch
function __orch_complete
  set -l words (commandline -opc) (commandline -ct)
  for line in (orch __complete --no-color -- $words[2..-1] 2>/dev/null </dev/null)
    if test "$line" = ":file"
      __fish_complete_path (commandline -ct)
    else
      string replace ' ' \\t -- $line
    end
  end
end
complete -c orch -f -a '(__orch_complete)'
`;

const SCRIPTS: Readonly<Record<Shell, string>> = { bash, zsh, fish };
