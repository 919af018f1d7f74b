/** What `git-unix` reads of a checkout and of its repository, and the commands by which it changes the checkout. */
import { type Command, type CommandRefusal, type CommandResult, commandFailure, exitedWith } from '../command.js';
import type { Host, PathFact } from '../host.js';
import type { ReadPurpose } from '../kind.js';
import { foreignDirectory, wayOf } from '../unix/foreign-directory.js';
import { parentOf } from '../unix/unix-path.js';

export type GitHave =
  /** `missing`: git or its user is not there. */
  | { readonly is: 'unknown'; readonly missing: boolean; readonly refusal: CommandRefusal }
  /** Something else is at the path. */
  | { readonly is: 'other'; readonly message: string }
  | {
      readonly is: 'absent';
      readonly fact: Extract<PathFact, { readonly type: 'absent' }>;
      readonly wanted: Wanted;
    }
  /** An empty directory. */
  | { readonly is: 'empty'; readonly wanted: Wanted }
  | {
      readonly is: 'checkout';
      /** Commit; null before the first one. */
      readonly head: string | null;
      readonly origin: string | null;
      /** `origin` without a user and password. */
      readonly shownOrigin: string | null;
      /** What would be lost, as it completes "the path …"; null for nothing. */
      readonly local: string | null;
      /** True when the wanted commit has been fetched. */
      readonly hasWanted: boolean;
      readonly wanted: Wanted;
    };

/** The wanted commit, why it is not known, or null where it is not looked for. */
type Wanted = string | CommandRefusal | null;

interface Checkout {
  readonly path: string;
  readonly url: string;
  readonly revision: string;
  readonly user?: string | null;
}

const COMMIT = /^[0-9a-f]{40}$/;

export const isCommit = (revision: string): boolean => COMMIT.test(revision);

/** The scheme of each address, or null for one that is refused. */
function schemeOf(url: string): 'https' | 'http' | 'ssh' | 'file' | null {
  const [, scheme] = /^(https|http|ssh):\/\/[A-Za-z0-9._~[\]:@-]+\/./.exec(url) ?? [];
  if (scheme === 'https' || scheme === 'http' || scheme === 'ssh') return scheme;
  if (/^file:\/\/\/./.test(url)) return 'file';
  return /^[A-Za-z0-9._-]+@[A-Za-z0-9][A-Za-z0-9.-]*:[^:]/.test(url) ? 'ssh' : null;
}

/** Returns why an address cannot be that of a repository, as it completes "url …"; null when it can. */
export function problemOfRepository(url: string, revision: string): string | null {
  const scheme = schemeOf(url);
  if (scheme === null || /:\/\/-/.test(url)) {
    return 'must begin with https://, ssh://, http:// or file:///, or be user@host:path';
  }
  if (/[\s\p{Cc}]/u.test(url)) return 'must hold no blanks; write %20';
  const authority = /^[a-z]+:\/\/([^/]*)/.exec(url)?.[1] ?? '';
  if (authority.includes('@') && (scheme !== 'ssh' || /:.*@/.test(authority))) {
    return 'must hold no user and password, which plans would show; use a key of ssh';
  }
  if (scheme === 'http' && !isCommit(revision)) {
    return 'with http:// needs a commit of 40 hex digits as revision, because others could change what comes';
  }
  return null;
}

/** Returns why a text cannot name a revision, as it completes "revision …"; null when it can. */
export function problemOfRevision(revision: string): string | null {
  if (/^[A-Za-z0-9][A-Za-z0-9._/+@-]*$/.test(revision) && !/\.\.|@\{|\/\/|\/$|\.$|\.lock$|\/\./.test(revision))
    return null;
  return 'must be a commit of 40 hex digits, or the name of a tag or branch';
}

/** Environment in which git reads no configuration but that of the checkout, and asks no questions. */
const environment = (path: string): Readonly<Record<string, string>> => ({
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_TERMINAL_PROMPT: '0',
  GIT_ASKPASS: 'true',
  GIT_OPTIONAL_LOCKS: '0',
  GIT_SSH_COMMAND: 'ssh -oBatchMode=yes',
  // A directory above may be a checkout too.
  GIT_CEILING_DIRECTORIES: parentOf(path),
});

/** Settings that a checkout cannot change: nothing but git itself runs, and only the scheme of the address is used. */
const settings = (url: string): readonly string[] =>
  [
    'core.hooksPath=/dev/null',
    'core.fsmonitor=false',
    'credential.helper=',
    'fetch.recurseSubmodules=false',
    'gc.auto=0',
    'init.defaultBranch=main',
    'maintenance.auto=false',
    'protocol.allow=never',
    `protocol.${schemeOf(url) ?? 'https'}.allow=always`,
    'submodule.recurse=false',
  ].flatMap((setting) => ['-c', setting]);

/** Returns a command of git. @param inside true to run it in the checkout */
function git({ path, url, user }: Omit<Checkout, 'revision'>, args: readonly string[], inside = true): Command {
  return {
    argv: ['git', ...settings(url), ...(inside ? ['-C', path] : []), ...args],
    env: environment(path),
    timeoutSecs: 'script',
    lifetime: 'end',
    ...(user == null ? {} : { user }),
  };
}

const REFS = ['+refs/heads/*:refs/remotes/origin/*', '+refs/tags/*:refs/tags/*'] as const;

/** Returns the commands that change a checkout. */
export const commandsOf = (want: Omit<Checkout, 'revision'>) => ({
  init: git(want, ['init', '--quiet', '--template=', want.path], false),
  origin: git(want, ['config', 'remote.origin.url', want.url]),
  fetch: git(want, ['fetch', '--quiet', '--force', '--prune', '--no-recurse-submodules', 'origin', ...REFS]),
  checkout: (commit: string) => git(want, ['checkout', '--quiet', '--detach', '--no-recurse-submodules', commit]),
});

export async function readCheckout(host: Host, want: Checkout, purpose: ReadPurpose): Promise<GitHave> {
  const { path, user } = want;
  if (user != null && host.platform !== 'linux') {
    const message = `user is possible on linux only, and this is a machine with ${host.platform}`;
    return unknown({ code: 'unsupported_on_platform', message });
  }
  const [fact, dotGit] = host.observe([
    { path, content: false, entries: true },
    { path: `${path}/.git`, content: false, entries: false },
  ]);
  if (fact === undefined || fact.type === 'unreadable') {
    return unknown(fact ?? { code: 'observe_failed', message: `${path} was not read` });
  }
  const unsafe = wayOfOthers(host, want);
  if (unsafe !== null) return unknown({ code: 'unsafe_path', message: unsafe });
  if (fact.type === 'absent' && purpose === 'removal') return { is: 'absent', fact, wanted: null };
  const command = git(want, ['version'], false);
  const end = host.unstartable?.(command) ?? null;
  if (end !== null) return unknown(commandFailure(command, { end, ...SILENT }), end.missing);
  if (fact.type === 'absent') return { is: 'absent', fact, wanted: await wantedOf(host, want, purpose) };
  if (fact.type !== 'directory') return { is: 'other', message: `${path} is no directory` };
  if (fact.entries?.length === 0) return { is: 'empty', wanted: await wantedOf(host, want, purpose) };
  if (dotGit?.type !== 'directory') {
    return { is: 'other', message: `${path} is not empty and no checkout; move it away, or declare another path` };
  }
  return readInside(host, want, purpose);
}

const SILENT = { stdout: '', stderr: '', truncated: false };

const unknown = (refusal: CommandRefusal, missing = false): GitHave => ({ is: 'unknown', missing, refusal });

async function readInside(host: Host, want: Checkout, purpose: ReadPurpose): Promise<GitHave> {
  const ask = (...args: readonly string[]) => host.run(git(want, args));
  const root = await ask('rev-parse', '--show-toplevel');
  if (!exitedWith(root, 0)) return unknown(commandFailure({ argv: ['git'] }, root));
  const head = textOf(await ask('rev-parse', '--quiet', '--verify', 'HEAD^{commit}'));
  const origin = textOf(await ask('config', '--get', 'remote.origin.url'));
  const wanted = await wantedOf(host, want, purpose);
  const commit = typeof wanted === 'string' ? wanted : null;
  const isThere = commit !== null && exitedWith(await ask('cat-file', '-e', `${commit}^{commit}`), 0);
  const isAsked = purpose === 'removal' || (head !== null && commit !== null && head !== commit);
  return {
    is: 'checkout',
    head,
    origin,
    shownOrigin: origin?.replace(/\/\/[^/@]*@/, '//') ?? null,
    local: isAsked ? await localOf(ask, head, purpose) : null,
    hasWanted: isThere,
    wanted,
  };
}

/** Returns what a change or a removal would lose, as it completes "the path …"; null for nothing. */
async function localOf(
  ask: (...args: readonly string[]) => Promise<CommandResult>,
  head: string | null,
  purpose: ReadPurpose,
): Promise<string | null> {
  const isRemoval = purpose === 'removal';
  const all = isRemoval ? ['--ignored', '--untracked-files=all'] : ['--untracked-files=no'];
  const status = await ask('status', '--porcelain', '-z', '--ignore-submodules=none', ...all);
  if (!exitedWith(status, 0)) return 'has a state that git does not read';
  const files = status.stdout.split('\0').filter((line) => line !== '');
  if (files.length > 0) {
    const names = files.slice(0, 3).map((line) => line.slice(3).replaceAll(/\p{Cc}/gu, '?'));
    const more = files.length > names.length ? ` and ${files.length - names.length} more` : '';
    return `has local changes (${names.join(', ')}${more})`;
  }
  const own = await ask('for-each-ref', '--count=1', 'refs/heads', 'refs/stash');
  if (isRemoval && textOf(own) !== null) return 'has local branches or stashes';
  if (head === null) return null;
  const known = await ask('for-each-ref', '--count=1', `--contains=${head}`, 'refs/remotes', 'refs/tags');
  return textOf(known) === null
    ? `has local commits (${head.slice(0, 12)} is in no branch or tag of the repository)`
    : null;
}

/** Returns the commit that a revision names in the repository, or why that is not known; null where it is not asked. */
async function wantedOf(host: Host, want: Checkout, purpose: ReadPurpose): Promise<Wanted> {
  const { url, revision } = want;
  if (isCommit(revision)) return revision;
  if (purpose === 'drift' || purpose === 'removal') return null;
  const names = [`refs/heads/${revision}`, `refs/tags/${revision}`, `refs/tags/${revision}^{}`];
  const result = await host.run(git(want, ['ls-remote', '--quiet', url, ...names], false));
  if (!exitedWith(result, 0)) return commandFailure({ argv: ['git'] }, result);
  const found = new Map(
    result.stdout.split('\n').flatMap((line) => {
      const [commit = '', ref = ''] = line.split('\t');
      return isCommit(commit) ? [[ref, commit] as const] : [];
    }),
  );
  const [branch, plain, peeled] = names.map((name) => found.get(name));
  const tag = peeled ?? plain;
  const refused = (message: string): CommandRefusal => ({ code: 'content_unavailable', message });
  if (branch !== undefined && tag !== undefined && branch !== tag) {
    return refused(`${revision} is a branch and a tag of ${url}; write the commit`);
  }
  return branch ?? tag ?? refused(`${url} has no branch or tag ${revision}; a commit is written with all 40 digits`);
}

const textOf = (result: CommandResult): string | null => {
  const text = exitedWith(result, 0) ? result.stdout.trim() : '';
  return text === '' ? null : text;
};

/**
 * Returns why git must not run at a path, because a user other than root and its own could put another checkout there, whose
 * configuration would run programs; null when it may.
 */
function wayOfOthers(host: Host, { path, user }: Checkout): string | null {
  const accounts = host.accounts();
  const own = user == null ? accounts.own.uid : (accounts.uid(user) ?? accounts.own.uid);
  const foreign = foreignDirectory(host, wayOf(path), own);
  return foreign === null
    ? null
    : `${foreign}, who could exchange the checkout; name its user in "user", or declare another path`;
}
