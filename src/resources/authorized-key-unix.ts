/** `authorized-key-unix`: one public key that may log in as a user. Other keys of the user stay. */
import * as Type from 'typebox';
import { closed } from '../kernel/schema.js';
import type { CommandRefusal } from './command.js';
import { type Decision, defineResource, type PlanContext } from './kind.js';
import {
  type KeyPlaces,
  keyFile,
  keyRequests,
  keySteps,
  keysIn,
  MAX_KEY_LINE,
  parseAuthorizedKey,
  problemOfHome,
  problemOfKey,
  readKeys,
  withKeys,
  withoutKey,
} from './unix/authorized-keys.js';
import { readUnixAccounts } from './unix/read-unix-accounts.js';
import { checkUnixNames, MAX_ACCOUNT_NAME, type UnixUser } from './unix/unix-accounts.js';

const schema = closed({
  user: Type.String({ minLength: 1, maxLength: MAX_ACCOUNT_NAME, description: 'Name of the user' }),
  key: Type.String({
    minLength: 1,
    maxLength: MAX_KEY_LINE,
    description: 'The line of the key: options if need be, type, key and comment',
  }),
});

type KeyBody = Type.Static<typeof schema>;

type KeyFact =
  | { readonly is: 'unreadable'; readonly refusal: CommandRefusal }
  | { readonly is: 'no-user' }
  | {
      readonly is: 'read';
      readonly user: UnixUser;
      readonly places: KeyPlaces;
      /** Text of the file; empty without one. */
      readonly text: string;
      /** The line of the key; null without one. */
      readonly line: string | null;
    };

export const authorizedKeyUnix = defineResource<KeyBody, KeyFact>({
  kind: 'authorized-key-unix',
  family: 'authorized-key',
  platforms: ['linux', 'macos'],
  schema,
  check({ user, key }) {
    const problem = problemOfKey(key);
    return [
      ...checkUnixNames({ '/user': user }),
      ...(problem === null ? [] : [{ path: '/key', message: `key ${problem}` }]),
    ];
  },
  identity: ({ user, key }) => `${user} ${parseAuthorizedKey(key)?.id ?? key}`,
  requires: ({ user }) => [{ family: 'user', identity: user }],
  clash: ({ user }, { body: { authorized_keys: keys } }) =>
    typeof keys === 'object' && keys !== null && 'exclusive' in keys && keys.exclusive === true
      ? `the keys of the user ${user} are exclusive`
      : null,

  async read(host, wants) {
    const { accounts, refusal } = await readUnixAccounts(host, { users: wants.map(({ user }) => user), groups: [] });
    if (refusal) return wants.map((): KeyFact => ({ is: 'unreadable', refusal }));
    return wants.map((want): KeyFact => {
      const user = accounts.user(want.user);
      if (user === undefined) return { is: 'no-user' };
      const problem = problemOfHome(user.name, user.home);
      if (problem !== null || user.home === null) return { is: 'unreadable', refusal: problem ?? NO_HOME };
      const places = { home: user.home, facts: host.observe(keyRequests(user.home)) };
      const read = readKeys(places, user);
      if ('code' in read) return { is: 'unreadable', refusal: read };
      const id = parseAuthorizedKey(want.key)?.id;
      const line = keysIn(read.text).find((key) => key.id === id)?.line ?? null;
      return { is: 'read', user, places, text: read.text, line };
    });
  },

  exists: (have) => have.is === 'unreadable' || (have.is === 'read' && have.line !== null),

  plan(want, have, context): Decision {
    const key = parseAuthorizedKey(want.key);
    if (key === null) return { action: 'fail', code: 'wrong_type', message: `key ${problemOfKey(want.key)}` };
    if (have.is === 'unreadable' || have.is === 'no-user') return unseen(want, have, context);
    const { user, places, text, line } = have;
    const content = withKeys(text, [key]);
    if (content === text) return { action: 'none' };
    const steps = keySteps(places, user.name, user.gid === null ? null : String(user.gid), content);
    const changes = [{ field: 'key', before: line, after: key.line }];
    return { action: line === null ? 'create' : 'update', changes, steps };
  },

  planRemoval(last, have): Decision {
    if (have.is === 'unreadable') return { action: 'fail', ...have.refusal };
    const key = parseAuthorizedKey(last.key);
    if (have.is === 'no-user' || have.line === null || key === null) return { action: 'none' };
    const { user, places, text } = have;
    const content = withoutKey(text, key);
    const steps = keySteps(places, user.name, user.gid === null ? null : String(user.gid), content);
    return { action: 'remove', changes: [], steps, reason: `from ${keyFile(places.home)}` };
  },
});

const NO_HOME: CommandRefusal = { code: 'parent_missing', message: 'the user has no home directory' };

/** Plans a key of a user that is still to be made, or whose home directory is. */
function unseen(
  { user, key }: KeyBody,
  have: Exclude<KeyFact, { is: 'read' }>,
  { mayAppear, declares }: PlanContext,
): Decision {
  const isToCome = have.is === 'no-user' && declares('user', user);
  if (mayAppear || isToCome) {
    const changes = [{ field: 'key', before: null, after: key }];
    return { action: 'create', changes, steps: [], reason: `the user ${user} is made first` };
  }
  if (have.is === 'unreadable') return { action: 'fail', ...have.refusal };
  return { action: 'fail', code: 'unknown_owner', message: `there is no user "${user}" on this machine` };
}
