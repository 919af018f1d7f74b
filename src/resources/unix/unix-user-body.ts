/** What a module says of a user of Linux or macOS, and the rules beyond the schema. */
import * as Type from 'typebox';
import { closed, optional } from '../../kernel/schema.js';
import type { BodyProblem } from '../kind.js';
import {
  checkGroupReferences,
  checkUnixId,
  checkUnixNames,
  LARGEST_UINT32,
  MAX_ACCOUNT_NAME,
} from './unix-account-name.js';
import { problemOfUnixPath } from './unix-path.js';

const Group = Type.String({ minLength: 1, maxLength: MAX_ACCOUNT_NAME });

export const unixUserSchema = closed({
  name: Type.String({ minLength: 1, maxLength: MAX_ACCOUNT_NAME, description: 'Name of the user' }),
  uid: optional(Type.Integer({ minimum: 0, maximum: LARGEST_UINT32, description: 'Numeric id; null: not managed' })),
  primary_group: optional(
    Type.String({
      minLength: 1,
      maxLength: MAX_ACCOUNT_NAME,
      description: 'Name or numeric id of the primary group; null: not managed',
    }),
  ),
  additional_groups: optional(
    Type.Array(Group, {
      description: 'All groups that the user is in besides, by name or numeric id; null: not managed',
    }),
  ),
  home: optional(Type.String({ minLength: 1, description: 'Path of the home directory; null: not managed' })),
  shell: optional(Type.String({ minLength: 1, description: 'Path of the login shell; null: not managed' })),
  system: optional(
    Type.Boolean({ description: 'Create it as a system account, without a home directory; not compared afterwards' }),
  ),
});

export type UnixUserBody = Type.Static<typeof unixUserSchema>;

export function checkUnixUser({
  name,
  uid,
  primary_group,
  additional_groups,
  home,
  shell,
}: UnixUserBody): BodyProblem[] {
  const groups = (additional_groups ?? []).map((group, at) => [`/additional_groups/${at}`, group]);
  return [
    ...checkUnixNames({ '/name': name }),
    ...checkUnixId('uid', uid),
    ...checkGroupReferences({
      ...(primary_group == null ? {} : { '/primary_group': primary_group }),
      ...Object.fromEntries(groups),
    }),
    // Some system accounts live in the root directory.
    ...(home == null || home === '/' ? [] : checkField('home', home)),
    ...(shell == null ? [] : checkField('shell', shell)),
  ];
}

function checkField(field: 'home' | 'shell', path: string): readonly BodyProblem[] {
  const forbidden = /[:\p{C}]/u.exec(path)?.[0];
  const problem =
    problemOfUnixPath(path) ?? (forbidden === undefined ? null : `must not contain ${JSON.stringify(forbidden)}`);
  return problem === null ? [] : [{ path: `/${field}`, message: `${field} ${problem}` }];
}
