/** The body of `service-systemd`. */
import * as Type from 'typebox';
import { closed, optional } from '../../kernel/schema.js';
import { UNIT_NAME_PATTERN } from './systemd-unit-name.js';

/** User and group names as systemd accepts them, and numeric ids. */
const ACCOUNT_PATTERN = '^[A-Za-z0-9_][A-Za-z0-9_.@-]{0,255}$';
const UnitName = Type.String({
  minLength: 1,
  maxLength: 255,
  pattern: UNIT_NAME_PATTERN,
  description: 'Name of a unit: letters, digits, ":", "_", ".", "-" and "@"',
});
const ids = (description: string) => Type.Array(Type.String({ minLength: 1 }), { description });

export const ServiceBodySchema = closed({
  name: Type.String({
    minLength: 1,
    maxLength: 255,
    pattern: UNIT_NAME_PATTERN,
    description: 'Name of the unit: letters, digits, ":", "_", ".", "-" and "@"; without a suffix it means .service',
  }),
  enabled: optional(Type.Boolean({ description: 'Whether it starts at boot; null: not managed' })),
  running: optional(Type.Boolean({ description: 'Whether it is active; null: not managed' })),
  exec_start: optional(
    Type.String({
      minLength: 1,
      description:
        'Command line as systemd reads it; with it orch writes the unit file, without it the unit must exist',
    }),
  ),
  description: optional(Type.String({ description: 'What the unit is, for people' })),
  type: optional(
    Type.Enum(['simple', 'exec', 'forking', 'oneshot', 'notify', 'dbus', 'idle'], {
      description: 'How systemd knows that it has started',
    }),
  ),
  user: optional(Type.String({ pattern: ACCOUNT_PATTERN, description: 'User that it runs as; root unless given' })),
  group: optional(
    Type.String({ pattern: ACCOUNT_PATTERN, description: "Group that it runs as; the user's unless given" }),
  ),
  working_directory: optional(Type.String({ minLength: 1, description: 'Absolute path of its working directory' })),
  environment: optional(
    Type.Record(Type.String(), Type.String(), {
      additionalProperties: false,
      description: 'Its environment variables',
    }),
  ),
  restart: optional(
    Type.Enum(['always', 'on_failure', 'never'], {
      description: 'When systemd starts it again after it has ended',
    }),
  ),
  dependencies: optional(Type.Array(UnitName, { description: 'Units that it requires and that start before it' })),
  reload_on: optional(ids('Ids of resources whose change reloads it; one that cannot be reloaded is restarted')),
  restart_on: optional(ids('Ids of resources whose change restarts it')),
});

export type ServiceBody = Type.Static<typeof ServiceBodySchema>;
