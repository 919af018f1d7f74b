/**
 * Bodies of resources outlive a release in the believed state, in operations, in modules and in journals. So a kind may get new
 * optional members, and must go on accepting each body that it has accepted.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CATALOGUE } from '../../src/resources/catalogue.js';
import { describeReleased } from '../support/released.js';

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly enum?: readonly unknown[];
  readonly [keyword: string]: unknown;
}

/** Keywords under which a smaller, and under which a larger number refuses more. */
const UPPER = ['maximum', 'maxLength', 'maxItems', 'maxProperties'];
const LOWER = ['minimum', 'minLength', 'minItems', 'minProperties'];
const PROSE = ['description', 'title', 'examples', 'default'];
const COMPARED = ['properties', 'required', 'items', 'anyOf', 'enum', ...UPPER, ...LOWER, ...PROSE];

/** Returns the places at which `now` may refuse what `before` accepted. */
function narrowed(before: Schema, now: Schema | undefined, at: string): readonly string[] {
  if (now === undefined) return [`${at} is gone`];
  const { anyOf, enum: values } = now;
  const members = Object.entries(before.properties ?? {});
  return [
    ...members.flatMap(([name, member]) => narrowed(member, now.properties?.[name], `${at}/${name}`)),
    ...(now.required ?? [])
      .filter((name) => !before.required?.includes(name))
      .map((name) => `${at}/${name} is required`),
    ...(before.items === undefined ? [] : narrowed(before.items, now.items, `${at}[]`)),
    ...(before.anyOf ?? [])
      .filter((choice) => !anyOf?.some((one) => narrowed(choice, one, at).length === 0))
      .map(() => `${at} lost a choice`),
    ...(before.enum ?? []).filter((value) => !values?.includes(value)).map((value) => `${at} refuses ${value}`),
    ...UPPER.filter((word) => Number(now[word] ?? Infinity) < Number(before[word] ?? Infinity)).map(
      (word) => `${at} has a lower ${word}`,
    ),
    ...LOWER.filter((word) => Number(now[word] ?? 0) > Number(before[word] ?? 0)).map(
      (word) => `${at} has a higher ${word}`,
    ),
    ...[...new Set([...Object.keys(before), ...Object.keys(now)])]
      .filter((word) => !COMPARED.includes(word) && word in now)
      .filter((word) => JSON.stringify(before[word]) !== JSON.stringify(now[word]))
      .map((word) => `${at} has another ${word}`),
  ];
}

const schemas = (): Readonly<Record<string, Schema>> => {
  const all = Object.fromEntries([...CATALOGUE].map(([name, { schema }]) => [name, schema]));
  return JSON.parse(
    JSON.stringify(all, (key, value) => (PROSE.includes(key) && typeof value === 'string' ? undefined : value)),
  );
};

describeReleased(import.meta.url, [
  {
    name: 'kinds',
    revision: 2,
    version: null,
    write: (directory) => writeFileSync(join(directory, 'schemas'), JSON.stringify(schemas())),
    read: (directory) => {
      const released: Readonly<Record<string, Schema>> = JSON.parse(readFileSync(join(directory, 'schemas'), 'utf8'));
      const now = schemas();
      return { narrowed: Object.entries(released).flatMap(([kind, schema]) => narrowed(schema, now[kind], kind)) };
    },
  },
]);
