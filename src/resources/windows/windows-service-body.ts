/** The body of `service-windows`. */
import * as Type from 'typebox';
import { closed, optional } from '../../kernel/schema.js';
import type { BodyProblem } from '../kind.js';
import { START_TYPES } from './windows-service.js';

/** No control characters: arguments of programs cannot hold a NUL, and none of these texts is more than a line. */
const LINE = '^[^\\u0000-\\u001f]*$';

export const serviceSchema = closed({
  name: Type.String({ minLength: 1, maxLength: 256, description: 'Name of the service, not its display name' }),
  running: optional(Type.Boolean({ description: 'Whether it runs; null: not managed' })),
  binary_path: optional(
    Type.String({ minLength: 1, pattern: LINE, description: 'Command line; with it the service is made when missing' }),
  ),
  display_name: optional(
    Type.String({ minLength: 1, maxLength: 256, pattern: LINE, description: 'Name that people see' }),
  ),
  description: optional(Type.String({ maxLength: 1024, pattern: LINE, description: 'What it is for' })),
  start_type: optional(Type.Enum(START_TYPES, { description: 'When Windows starts it' })),
  account: optional(
    Type.String({ minLength: 1, pattern: LINE, description: 'Account without a password, such as LocalSystem' }),
  ),
  dependencies: optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 256, pattern: LINE }), {
      description: 'Services that have to run first; "+NAME" is a group of services',
    }),
  ),
  restart_on: optional(
    Type.Array(Type.String({ minLength: 1 }), { description: 'Ids of resources whose change restarts it' }),
  ),
});

export type ServiceBody = Type.Static<typeof serviceSchema>;

/** Rules beyond the schema. */
export const checkService = ({ name, dependencies }: ServiceBody): readonly BodyProblem[] => [
  ...checkName('/name', name),
  ...(dependencies ?? []).flatMap((one, at) => checkName(`/dependencies/${at}`, one.replace(/^\+/, ''))),
];

function checkName(path: string, name: string): readonly BodyProblem[] {
  const refuse = (message: string) => [{ path, message: `the service name ${JSON.stringify(name)} ${message}` }];
  if (name === '' || name.trim() !== name) return refuse('must not be empty or begin or end with a space');
  if (/[/\\\u0000-\u001f]/.test(name)) return refuse('must not contain slashes, backslashes or control characters');
  return [];
}
