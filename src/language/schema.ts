/** The schema of a module. Validation, TypeScript types and the JSON Schema for editors derive from it. */
import * as Type from 'typebox';
import { MODULE_NAME_PATTERN } from '../kernel/ids.js';
import { closed, optional } from '../kernel/schema.js';
import { absenceOf } from '../resources/absence-name.js';
import { CATALOGUE } from '../resources/catalogue.js';
import { CHECK_KINDS, CHECK_SCHEMAS, type CheckKind } from '../resources/checks/check-kinds.js';
import type { Body } from '../resources/kind.js';
import { CONFIRM_PATTERN } from './confirm-time.js';
import type { FileDigests } from './files-beside.js';
import { inputJsonSchemas } from './inputs/input-schema.js';
import {
  absenceNames,
  admitExpressions,
  isKind,
  type KindSet,
  type KnownKind,
  kindNames,
  kindSet,
} from './kind-set.js';
import { shapeOf } from './shape-schema.js';
import { LIQUID } from './templates/template.js';
import type { TreeLists } from './trees.js';

/** Maximum resources in one module (`docs/protocols/limits.md`). */
export const MAX_RESOURCES = 2000;

/** Maximum names in one entry (`docs/protocols/limits.md`). */
export const MAX_NAMES = 256;

/** Maximum health checks in one module (`docs/protocols/limits.md`). */
export const MAX_CHECKS = 100;

/** Seconds: bounds and defaults of `within` and `timeout`. */
export const CHECK_WITHIN = { standard: 30, maximum: 900 } as const;
export const CHECK_TIMEOUT = { standard: 10, maximum: 120 } as const;

export const ARCHES = ['x86_64', 'aarch64', 'armv7'] as const;
export const INIT_SYSTEMS = ['systemd', 'openrc', 'init.d', 'launchd', 'scm'] as const;
export const PLATFORMS = ['linux', 'windows', 'macos'] as const;
/** Known distributions; others are accepted with a warning. */
export const KNOWN_DISTROS = ['ubuntu', 'debian', 'rhel', 'fedora', 'alma', 'rocky', 'arch', 'alpine'] as const;

/** Constraints on an agent, which must all match: built-in attributes by name, and tags as `tag.<name>`. */
export type AttributeClause = Readonly<Record<string, string>>;

/** An object with one key, the kind, and its body below. */
export type KindChoice = Readonly<Record<string, Body>>;

/** Titles of an entry of `resources`, and of one of `variants`. */
const ENTRY = 'Resource';
const VARIANT = 'Variant';

const LINE = '^[^\\u0000-\\u001f\\u007f]+$';

/** Keys of clauses that are attributes of an agent. */
const ATTRIBUTE_KEYS = {
  arch: Type.Optional(Type.Enum(ARCHES, { description: 'Processor architecture' })),
  distro: Type.Optional(Type.String({ minLength: 1, description: `Distribution; known: ${KNOWN_DISTROS.join(', ')}` })),
  init_system: Type.Optional(Type.Enum(INIT_SYSTEMS, { description: 'Service manager' })),
  platform: Type.Optional(Type.Enum(PLATFORMS, { description: 'Operating system; every agent has it' })),
  version: Type.Optional(Type.String({ minLength: 1, description: 'Version of the system or distribution' })),
};

/** Options of clauses: a title for messages, and keys for tags. */
const CLAUSE = {
  title: 'Attribute clause',
  description: 'Matches an agent when every key equals its attribute; `tag.<name>` is a tag of the agent',
  patternProperties: { '^tag\\.[^\\s]+$': Type.String({ description: 'Value of an operator-defined tag' }) },
};

const clauseSchema = Type.Unsafe<AttributeClause>(closed(ATTRIBUTE_KEYS, CLAUSE));

/** Clause of a value set, which also knows the name of an agent. */
export const valueClauseSchema = Type.Unsafe<AttributeClause>(
  closed(
    { agent: Type.Optional(Type.String({ minLength: 1, description: 'Name of one agent' })), ...ATTRIBUTE_KEYS },
    CLAUSE,
  ),
);

const templateSchema = closed(
  {
    id: Type.String({
      minLength: 1,
      maxLength: 256,
      pattern: LINE,
      description: 'Name for resources to refer to, one line',
    }),
    content: Type.String({ description: 'Text; expressions in it are filled in per agent' }),
    engine: Type.Optional(
      Type.Enum([LIQUID], {
        description: 'liquid: the text has conditions and loops, and writes {{ … }} for expressions',
      }),
    ),
  },
  { title: 'Template', description: 'A named text that resources use as their content' },
);

const choiceSchema = (kinds: Iterable<readonly [name: string, kind: Pick<KnownKind, 'schema'>]>) =>
  Type.Unsafe<KindChoice>(
    closed(Object.fromEntries([...kinds].map(([name, { schema }]) => [name, Type.Optional(schema)])), {
      title: 'Resource kind',
      description: 'Exactly one key, the kind of the resource, with its body',
      minProperties: 1,
      maxProperties: 1,
    }),
  );

/** Returns the kind with a schema that takes `names` in place of `name` where a module may list several, for editors. */
function withNames({ schema, listed }: KnownKind): Pick<KnownKind, 'schema'> {
  const { properties = {}, required = [] } = shapeOf(schema);
  const { name } = properties;
  if (!listed || name === undefined) return { schema };
  const names = Type.Array(name, {
    minItems: 1,
    maxItems: MAX_NAMES,
    description: 'Several in place of name: each is a resource of its own with the other fields',
  });
  const rest = required.filter((one) => one !== 'name');
  const oneOf = [{ required: ['name'] }, { required: ['names'] }];
  return { schema: { ...schema, properties: { ...properties, names }, required: rest, oneOf } as Type.TSchema };
}

/** Returns the schema of the value of `absent`, for editors. */
const absentSchema = (kinds: KindSet) => ({
  ...choiceSchema(
    absenceNames(kinds).flatMap((name) => {
      const kind = kinds.get(absenceOf(name));
      return kind === undefined ? [] : [[name, withNames(kind)] as const];
    }),
  ),
  title: 'Absence',
  description: 'Exactly one key, the kind of what is not there after an apply, with what identifies it',
});

const duration = (what: string) =>
  Type.String({ pattern: '^[1-9]\\d{0,3}[sm]$', description: `A number with s or m, such as 30s or 2m: ${what}` });

/** Schemas of the values below the kinds of a check. */
type CheckValues = Readonly<Record<CheckKind, Type.TSchema>>;

/** Returns the schema of an entry of `verify`; its values may be anything that `values` says. */
function checkSchema<Values extends CheckValues>(values: Values) {
  return closed(
    {
      name: optional(
        Type.String({ minLength: 1, maxLength: 256, pattern: LINE, description: 'Label in reports, one line' }),
      ),
      when: Type.Optional(clauseSchema),
      within: optional(duration('the time in which the check must pass once [default: 30s, maximum: 15m]')),
      timeout: optional(duration('the time of one attempt [default: 10s, maximum: 2m]')),
      script: Type.Optional(values.script),
      http: Type.Optional(values.http),
      tcp: Type.Optional(values.tcp),
      unit: Type.Optional(values.unit),
    },
    {
      title: 'Health check',
      description: 'Exactly one of script, http, tcp and unit, which runs after an apply',
      oneOf: CHECK_KINDS.map((kind) => ({ required: [kind] })),
    },
  );
}

const WRITTEN_CHECKS = {
  script: admitExpressions(CHECK_SCHEMAS.script),
  http: admitExpressions(CHECK_SCHEMAS.http),
  tcp: admitExpressions(CHECK_SCHEMAS.tcp),
  unit: admitExpressions(CHECK_SCHEMAS.unit),
} as const;

/** When a resource or a group is there, and how often. */
const repeatSchemas = {
  // Null is no value here: a condition that was left empty must not mean that there is none.
  if: Type.Optional(
    Type.Union([Type.String({ minLength: 1 }), Type.Boolean()], {
      description:
        'Condition, such as tags.env == "prod"; while it is false, the resource is not part of the desired state',
    }),
  ),
  for_each: Type.Optional(
    Type.Unknown({
      description:
        'List or mapping, or an expression that gives one: the resource is there once for each element, which is each.key and each.value',
    }),
  ),
  key: Type.Optional(
    Type.String({ minLength: 1, description: 'Field that tells the mappings of a list in for_each apart' }),
  ),
};

/** Inputs whose types `readInputs` checks. */
const ANY_INPUTS = Type.Unsafe<Readonly<Record<string, unknown>>>(Type.Object({}));

/** Returns the schema of a module with the given schemas for the value of `resource`, of checks and of `inputs`. */
export function moduleSchemaWith<Choice extends Type.TSchema>(
  choice: Choice,
  checks: CheckValues = WRITTEN_CHECKS,
  inputs: Type.TUnsafe<Readonly<Record<string, unknown>>> = ANY_INPUTS,
) {
  const absent = Type.Optional(
    Type.Unknown({ description: 'In place of "resource": what is not there after an apply, whoever made it' }),
  );
  const variant = closed(
    { when: clauseSchema, resource: Type.Optional(choice), absent },
    {
      title: VARIANT,
      description: 'A resource for the agents that the clause matches',
      oneOf: [{ required: ['resource'] }],
    },
  );
  const named = {
    name: optional(
      Type.String({ minLength: 1, maxLength: 1024, pattern: LINE, description: 'Label in reports, one line' }),
    ),
    id: optional(
      Type.String({
        minLength: 1,
        maxLength: 256,
        pattern: LINE,
        description: 'Unique id within the module, one line',
      }),
    ),
    depends_on: optional(
      Type.Array(Type.String({ minLength: 1 }), {
        description: 'Ids of resources of this module that are applied first',
      }),
    ),
    ...repeatSchemas,
  };
  const single = {
    ...named,
    resource: Type.Optional(choice),
    absent,
    variants: Type.Optional(
      Type.Array(variant, { minItems: 1, description: 'The most specific matching one is chosen per agent' }),
    ),
  };
  const ONE = [{ required: ['resource'] }, { required: ['variants'] }];
  const member = closed(single, {
    title: ENTRY,
    description: 'Either one resource for every agent, or variants',
    oneOf: ONE,
  });
  const entry = closed(
    {
      ...single,
      resources: Type.Optional(
        Type.Array(member, { minItems: 1, description: 'Resources that share if, for_each and depends_on' }),
      ),
    },
    {
      title: ENTRY,
      description: 'One resource for every agent, or variants, or a group of resources',
      oneOf: [...ONE, { required: ['resources'] }],
    },
  );
  return closed(
    {
      name: Type.String({
        pattern: MODULE_NAME_PATTERN,
        description: 'Up to 128 letters, digits, ".", "_" and "-", a letter or digit first',
      }),
      supports: optional(
        Type.Array(clauseSchema, { description: 'An agent must match at least one clause; none: no agent' }),
      ),
      inputs: Type.Optional({ ...inputs, description: 'Values that the module takes from outside, by name' }),
      resources: optional(
        Type.Array(entry, {
          maxItems: MAX_RESOURCES,
          description: 'Applied in this order unless depends_on says otherwise',
        }),
      ),
      templates: optional(Type.Array(templateSchema, { description: 'Named texts that resources use as content' })),
      verify: optional(
        Type.Array(checkSchema(checks), {
          maxItems: MAX_CHECKS,
          description: 'Health checks that run after an apply, which fails unless each of them passes',
        }),
      ),
      confirm: optional(
        Type.String({
          pattern: CONFIRM_PATTERN,
          description:
            'Duration from 10s to 1h: the agent undoes an apply with the module unless it succeeds and the agent comes back in that time',
        }),
      ),
    },
    { title: 'Module', description: 'A declarative list of resources' },
  );
}

/** Returns the schema of a module with the given kinds. */
export const moduleSchema = (kinds: KindSet) => moduleSchemaWith(choiceSchema(kinds));

export interface ModuleDefinition extends Type.Static<ReturnType<typeof moduleSchema>> {
  /** Files beside the module, which no text holds; absent for none. */
  readonly files?: FileDigests;
  /** Lists of directories beside the module; absent for none. */
  readonly trees?: TreeLists;
}
export type ResourceEntry = NonNullable<ModuleDefinition['resources']>[number];
/** An entry that is no group. */
export type SingleEntry = Omit<ResourceEntry, 'resources'>;
export type Variant = NonNullable<ResourceEntry['variants']>[number];
export type CheckEntry = NonNullable<ModuleDefinition['verify']>[number];
export type Template = Type.Static<typeof templateSchema>;

/** The kinds of the catalogue, with their absences. */
export const STANDARD_KINDS: KindSet = kindSet(CATALOGUE);

/** JSON Schema 2020-12 of a module, for editors. Entries and variants may have a kind or `absent` in place of `resource`, as reading admits it. */
export function moduleJsonSchema(kinds: KindSet = STANDARD_KINDS): object {
  const names = kindNames(kinds);
  const refs = Object.fromEntries(names.map((name) => [name, { $ref: `#/$defs/choice/properties/${name}` }]));
  const required = names.map((name) => ({ required: [name] }));
  const { inputs, input } = inputJsonSchemas('#/$defs/input');
  const schema = JSON.stringify(moduleSchemaWith(Type.Ref('#/$defs/choice'), WRITTEN_CHECKS, Type.Unsafe(inputs)));
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $id: 'urn:orch:schema:module:v1',
    ...JSON.parse(schema, (_, value) => {
      const properties = { ...value?.properties, ...refs, absent: { $ref: '#/$defs/absent' } };
      const oneOf = [...(value?.oneOf ?? []), ...required, { required: ['absent'] }];
      return value?.title === VARIANT || value?.title === ENTRY ? { ...value, properties, oneOf } : value;
    }),
    $defs: JSON.parse(
      JSON.stringify({
        choice: choiceSchema(
          [...kinds].flatMap(([name, kind]) => (isKind(kinds, name) ? [[name, withNames(kind)] as const] : [])),
        ),
        absent: absentSchema(kinds),
        input,
      }),
    ),
  };
}
