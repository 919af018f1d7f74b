/** The body of `service-launchd`. */
import * as Type from 'typebox';
import { closed, optional } from '../../kernel/schema.js';

/** A label is the name of a file, and stands in `system/LABEL`. */
const LABEL_PATTERN = '^[A-Za-z0-9_][A-Za-z0-9_.-]*$';
const ACCOUNT_PATTERN = '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,255}$';
const Path = (description: string) => Type.String({ minLength: 1, description });

export const LaunchdBodySchema = closed({
  name: Type.String({
    minLength: 1,
    maxLength: 200,
    pattern: LABEL_PATTERN,
    description: 'Label of the service: letters, digits, "_", "." and "-"',
  }),
  enabled: optional(Type.Boolean({ description: 'Whether launchd may load it, at boot as well; null: not managed' })),
  running: optional(Type.Boolean({ description: 'Whether it is loaded and has a process; null: not managed' })),
  program_arguments: optional(
    Type.Array(Type.String(), {
      minItems: 1,
      description: 'The program and its arguments; with them orch writes the property list, without them it must exist',
    }),
  ),
  run_at_load: optional(Type.Boolean({ description: 'Whether it starts when it is loaded' })),
  keep_alive: optional(Type.Boolean({ description: 'Whether launchd starts it again when it ends' })),
  user: optional(Type.String({ pattern: ACCOUNT_PATTERN, description: 'User that it runs as; root unless given' })),
  group: optional(
    Type.String({ pattern: ACCOUNT_PATTERN, description: "Group that it runs as; the user's unless given" }),
  ),
  working_directory: optional(Path('Absolute path of its working directory')),
  environment: optional(
    Type.Record(Type.String(), Type.String(), {
      additionalProperties: false,
      description: 'Its environment variables',
    }),
  ),
  standard_out_path: optional(Path('File that its standard output is added to')),
  standard_error_path: optional(Path('File that its standard error is added to')),
  description: optional(Type.String({ description: 'What the service is, for people' })),
  restart_on: optional(
    Type.Array(Type.String({ minLength: 1 }), { description: 'Ids of resources whose change restarts it' }),
  ),
});

export type LaunchdBody = Type.Static<typeof LaunchdBodySchema>;
