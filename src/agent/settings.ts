/** Every setting of the agent's YAML file: one table from which reading, schema and documentation derive. */
import * as Type from 'typebox';
import { SCRIPT_TIMEOUT_SECS } from '../resources/command.js';

/** By dotted key. All of them take effect as soon as the file has changed. */
export const AGENT_SETTINGS = {
  'metrics.enabled': {
    schema: Type.Boolean({ default: true, description: 'Measure processor, memory and disk for the orchestrator' }),
  },
  'metrics.collection_interval': {
    schema: Type.Integer({ minimum: 1, maximum: 3600, default: 30, description: 'Seconds between two measurements' }),
  },
  'remote_terminal.enabled': {
    schema: Type.Boolean({
      default: false,
      description:
        'Let operators open shells and run commands on this machine; turning it off ends those that are open',
    }),
  },
  'remote_terminal.shell': {
    schema: Type.String({
      default: '',
      pattern: '^(/.*)?$',
      maxLength: 4096,
      description: "Path of the shell, one of `/etc/shells`; empty for the user's login shell",
    }),
  },
  'remote_terminal.allow_operator_shell_override': {
    schema: Type.Boolean({
      default: false,
      description: 'Let operators ask for another shell of `/etc/shells`',
    }),
  },
  'remote_terminal.max_sessions': {
    schema: Type.Integer({
      minimum: 1,
      maximum: 1000,
      default: 100,
      description: 'Shells that may be open at the same time',
    }),
  },
  'remote_terminal.user': {
    schema: Type.String({
      default: '',
      maxLength: 256,
      description:
        'User that shells and commands run as; empty for the user of the agent, another one only where that is root',
    }),
  },
  'remote_terminal.accept_env': {
    schema: Type.Array(Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_]*\\*?$', maxLength: 64 }), {
      default: ['LANG', 'LC_*', 'COLORTERM'],
      maxItems: 64,
      description:
        'Variables of the operator that shells and commands get, a list of names or of beginnings with `*`; none of those that decide which code runs',
    }),
  },
  script_timeout: {
    schema: Type.Integer({
      minimum: 1,
      maximum: 3600,
      default: SCRIPT_TIMEOUT_SECS,
      description: 'Seconds that a script of a module may take',
    }),
  },
} as const satisfies Readonly<Record<string, { readonly schema: Type.TSchema }>>;

export type AgentSettings = {
  readonly [K in keyof typeof AGENT_SETTINGS]: Type.Static<(typeof AGENT_SETTINGS)[K]['schema']>;
};

/** What holds where the file says nothing. */
export const standardSettings = (): AgentSettings =>
  Object.fromEntries(
    Object.entries(AGENT_SETTINGS).map(([key, { schema }]) => [key, (schema as { default?: unknown }).default]),
  ) as AgentSettings;
