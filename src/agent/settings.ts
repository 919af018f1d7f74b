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
