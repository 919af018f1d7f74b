/** Kinds with what the catalogue's later kinds bring: triggers, choices, numbers, maps, and identities per module. */
import * as Type from 'typebox';
import { closed, nullable, optional } from '../../../src/kernel/schema.js';
import { kindSet } from '../../../src/language/kind-set.js';
import { CATALOGUE } from '../../../src/resources/catalogue.js';
import type { Body, ResourceKind } from '../../../src/resources/kind.js';

const ids = optional(Type.Array(Type.String()));

const unused: Pick<ResourceKind, 'platforms' | 'read' | 'exists' | 'plan' | 'planRemoval'> = {
  platforms: ['linux'],
  read: () => [],
  exists: () => false,
  plan: () => ({ action: 'none' }),
  planRemoval: () => ({ action: 'none' }),
};

const text = (body: Body, member: string): string => {
  const value = body[member];
  return typeof value === 'string' ? value : '';
};

const sampleService: ResourceKind = {
  ...unused,
  kind: 'sample-service',
  family: 'service',
  schema: closed({
    name: Type.String({ minLength: 1, pattern: '^[a-z.]+$', description: 'Unit name in lower case' }),
    running: optional(Type.Boolean()),
    type: optional(Type.Enum(['simple', 'oneshot', 'notify'])),
    nice: optional(Type.Integer({ minimum: -20, maximum: 19 })),
    step: optional(Type.Integer({ multipleOf: 5 })),
    environment: optional(Type.Record(Type.String(), nullable(Type.String()))),
    dependencies: optional(Type.Array(Type.String(), { minItems: 1, maxItems: 3 })),
    either: optional(Type.Union([Type.Integer(), Type.Array(Type.Integer({ maximum: 9 }), { uniqueItems: true })])),
    reload_on: ids,
    restart_on: ids,
  }),
  check: () => [],
  identity: (body) => text(body, 'name'),
  requires: () => [],
};

const sampleScript: ResourceKind = {
  ...unused,
  kind: 'sample-script',
  family: 'script',
  schema: closed({
    program: Type.Enum(['sh', 'bash']),
    apply: Type.String(),
    manages: optional(Type.String()),
    rerun_on: ids,
  }),
  check: () => [],
  identity: (body, id) => text(body, 'manages') || (id ?? ''),
  requires: () => [],
};

const sampleText: ResourceKind = {
  ...unused,
  kind: 'sample-text',
  family: 'group',
  schema: closed({ name: Type.String(), content: optional(Type.String()), template: optional(Type.String()) }),
  check: (body) =>
    text(body, 'content').includes('\0') ? [{ path: '/content', message: 'content holds a NUL character' }] : [],
  identity: (body) => text(body, 'name'),
  requires: () => [],
};

/** The catalogue's kinds and the samples. */
export const SAMPLE_KINDS = kindSet(
  new Map([...CATALOGUE, ...[sampleService, sampleScript, sampleText].map((kind) => [kind.kind, kind] as const)]),
);
