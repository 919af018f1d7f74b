/** `git-unix`: a checkout of a git repository at a revision, made and changed as its user, and never over local changes. */
import * as Type from 'typebox';
import { closed, optional } from '../kernel/schema.js';
import { type Command, type CommandRefusal, commandFailure } from './command.js';
import {
  commandsOf,
  type GitHave,
  isCommit,
  problemOfRepository,
  problemOfRevision,
  readCheckout,
} from './git/checkout.js';
import type { Step } from './host.js';
import { type BodyProblem, type Decision, defineResource, type FieldChange } from './kind.js';
import { findMissingParents, parentsField } from './missing-parents.js';
import { checkUserReference, MAX_ACCOUNT_NAME, parseUnixId } from './unix/unix-accounts.js';
import { checkUnixPath, holdersOfUnixPath } from './unix/unix-metadata.js';
import { aboveUnixPath, UNIX_RULES } from './unix/unix-path.js';

const schema = closed({
  path: Type.String({ minLength: 1, description: 'Absolute path of the checkout, the identity of the resource' }),
  url: Type.String({ minLength: 1, maxLength: 2048, description: 'Address of the repository' }),
  revision: Type.String({ minLength: 1, maxLength: 255, description: 'Commit, tag or branch' }),
  user: optional(
    Type.String({
      minLength: 1,
      maxLength: MAX_ACCOUNT_NAME,
      description: 'User that git runs as and who owns the files, by name or numeric id',
    }),
  ),
  parents: parentsField,
});

export type GitBody = Type.Static<typeof schema>;

export const gitUnix = defineResource<GitBody, GitHave>({
  kind: 'git-unix',
  family: 'git-unix',
  platforms: ['linux', 'macos'],
  schema,
  check: (body) => [...checkUnixPath(body), ...checkGit(body)],
  identity: ({ path }) => path,
  requires: ({ path, user }) => [
    { family: 'path', identity: path },
    ...holdersOfUnixPath({ path }),
    ...(user == null || parseUnixId(user) !== undefined ? [] : [{ family: 'user', identity: user } as const]),
  ],
  above: aboveUnixPath,

  async read(host, wants, purpose) {
    const found: GitHave[] = [];
    for (const want of wants) found.push(await readCheckout(host, want, purpose));
    return found;
  },

  exists: (have) => have.is === 'checkout' || have.is === 'other',

  plan(want, have, context): Decision {
    const { path, url, revision } = want;
    if (have.is === 'other') return { action: 'fail', code: 'wrong_type', message: have.message };
    if (have.is === 'unknown') {
      if (have.missing && context.mayAppear) return later(want);
      return { action: 'fail', ...have.refusal };
    }
    if (have.wanted !== null && typeof have.wanted !== 'string') {
      return context.mayAppear && have.is !== 'checkout' ? later(want) : { action: 'fail', ...have.wanted };
    }
    const wanted = have.wanted ?? context.memo ?? (have.is === 'checkout' ? have.head : null);
    const git = commandsOf(want);
    if (have.is !== 'checkout') {
      const missing = have.is === 'absent' ? findMissingParents(want, have.fact, context, UNIX_RULES) : null;
      if (missing?.refusal) return { ...missing.refusal, action: 'fail' };
      const directory: readonly Step[] =
        have.is === 'absent'
          ? [{ do: 'make-directory', path, owner: want.user ?? null, group: null, mode: null, ...missing?.parents }]
          : [];
      return {
        action: 'create',
        changes: [
          ...(missing?.changes ?? []),
          { field: 'url', before: null, after: url },
          { field: 'revision', before: null, after: shown(revision, wanted) },
        ],
        steps: [...directory, ...[git.init, git.origin, git.fetch, git.checkout(wanted ?? '')].map(running)],
        ...missing?.makes,
      };
    }
    const isMoved = have.head !== wanted;
    const isElsewhere = have.origin !== url;
    if (!isMoved && !isElsewhere) return { action: 'none' };
    if (isMoved && have.local !== null)
      return {
        action: 'fail',
        code: 'local_changes',
        message: `${path} ${have.local}, so it stays as it is; bring them to safety, and undo them`,
      };
    const changes: readonly FieldChange[] = [
      ...(isElsewhere ? [{ field: 'url', before: have.shownOrigin, after: url }] : []),
      ...(isMoved ? [{ field: 'revision', before: shown('', have.head), after: shown(revision, wanted) }] : []),
    ];
    const commands = [
      ...(isElsewhere ? [git.origin] : []),
      ...(isMoved && !have.hasWanted ? [git.fetch] : []),
      ...(isMoved ? [git.checkout(wanted ?? '')] : []),
    ];
    return { action: 'update', changes, steps: commands.map(running) };
  },

  planRemoval({ path }, have, context): Decision {
    if (have.is === 'unknown') return { action: 'fail', ...have.refusal };
    if (have.is === 'absent') return { action: 'none' };
    const release = (reason: string): Decision => ({ action: 'release', reason: `${path} ${reason}` });
    if (have.is !== 'checkout') return release('is no longer a checkout');
    if (context.declares('path', path)) return release('is declared as a directory');
    if (have.local !== null) return release(have.local);
    if (have.head !== context.memo) return release('is at another commit than orch checked out');
    return { action: 'remove', changes: [], steps: [{ do: 'remove-tree', path }] };
  },

  memo: (_want, have) => (have.is === 'checkout' ? have.head : null),
  explain: (_host, _body, { command }, result): CommandRefusal => commandFailure(command, result),
});

function checkGit({ path, url, revision, user }: GitBody): readonly BodyProblem[] {
  const repository = problemOfRepository(url, revision);
  const wrong = problemOfRevision(revision);
  return [
    ...(repository === null ? [] : [{ path: '/url', message: `url ${repository}` }]),
    ...(wrong === null ? [] : [{ path: '/revision', message: `revision ${wrong}` }]),
    ...(/^\/[^/]*$/.test(path)
      ? [{ path: '/path', message: `path must not be ${path}, a directory of the system` }]
      : []),
    ...(user == null ? [] : checkUserReference('/user', user)),
  ];
}

const running = (command: Command): Step => ({ do: 'run', command });

const later = ({ url, revision }: GitBody): Decision => ({
  action: 'create',
  changes: [
    { field: 'url', before: null, after: url },
    { field: 'revision', before: null, after: revision },
  ],
  steps: [],
  reason: 'what it needs may come with an earlier change',
});

/** Characters of a commit in a plan. */
const SHOWN = 12;

/** Returns how a plan shows a commit, with the revision that names it. */
function shown(revision: string, commit: string | null): string {
  const short = commit === null ? 'no commit' : commit.slice(0, SHOWN);
  return revision === '' || isCommit(revision) ? short : `${revision} (${short})`;
}
