/**
 * The pages of the resource kinds under docs/kinds/, and the table of them in docs/kinds.md. What the catalogue knows is written from
 * it: platforms, fields and their types. What a field means, the examples and the rules are written by hand in the pages.
 */
import { branchesOf, choicesOf, memberNames, type ShapeSchema, shapeOf } from '../../src/language/shape-schema.js';
import { MODULE_KINDS } from '../../src/resources/catalogue.js';
import type { ResourceKind } from '../../src/resources/kind.js';

const HEAD = '| field | type | meaning |\n|---|---|---|';

/** Returns the page of a kind with its generated parts renewed. A new field gets the description of the schema as its meaning. */
export function kindPage(kind: ResourceKind, page: string): string {
  const meanings = fieldMeanings(page);
  const rows = memberNames(kind.schema).map((name) => {
    const { type, isRequired, description } = fieldOf(kind, name);
    return `| \`${name}\` | ${type}${isRequired ? ', required' : ''} | ${meanings.get(name) ?? description} |`;
  });
  const table = `${HEAD}\n${rows.join('\n')}`;
  const body = (page === '' ? newPage(kind) : page)
    .replace(/^Works on .*\n\n/m, '')
    .replace(/^\| field \|.*\n(\|.*\n)+/m, () => `${table}\n`);
  const [title = '', summary = '', ...rest] = body.split('\n\n');
  return [title, summary, `Works on ${platformsOf(kind)}.`, ...rest].join('\n\n');
}

const newPage = ({ kind }: ResourceKind): string => `# \`${kind}\`\n\nTODO: summary.\n\n${HEAD}\n| |\n`;

/** Returns docs/kinds.md with its table renewed from the pages, which `read` returns by kind. */
export function kindIndex(page: string, read: (kind: string) => string): string {
  const rows = [...MODULE_KINDS.values()].map((kind) => {
    const [, summary = ''] = read(kind.kind).split('\n\n');
    return `| [\`${kind.kind}\`](kinds/${kind.kind}.md) | ${platformsOf(kind)} | ${summary} |`;
  });
  return page.replace(/^\| kind \|.*\n\|---.*\n(\|.*\n)*/m, () =>
    ['| kind | works on | purpose |', '|---|---|---|', ...rows, ''].join('\n'),
  );
}

/** Returns the meanings of the fields in the table of a page, by field. */
export function fieldMeanings(page: string): ReadonlyMap<string, string> {
  const rows = [...page.matchAll(/^\| `(\w+)` \| (?:[^|]|(?<=\\)\|)* \| (.+) \|$/gm)];
  return new Map(rows.map(([, name = '', meaning = '']) => [name, meaning]));
}

const PLATFORM_NAMES = { linux: 'Linux', macos: 'macOS', windows: 'Windows' } as const;

const platformsOf = ({ platforms }: ResourceKind): string =>
  platforms
    .map((platform) => PLATFORM_NAMES[platform])
    .join(', ')
    .replace(/, (?=\w+$)/, ' and ');

const fieldOf = ({ schema }: ResourceKind, name: string) => memberOf(shapeOf(schema), name);

function memberOf({ properties = {}, required = [] }: ShapeSchema, name: string) {
  const field = properties[name];
  const branches = field === undefined ? [] : branchesOf(field).map(shapeOf);
  const [shape = {}] = branches.filter(({ type }) => type !== 'null');
  return { type: typeText(shape), isRequired: required.includes(name), description: shape.description ?? '' };
}

/** Returns a type for people: `text, at most 48 characters`. */
function typeText(shape: ShapeSchema): string {
  const choices = choicesOf(shape);
  if (choices !== null) return choices.map((one) => `\`${one}\``).join(', ');
  const { type, items, maxLength, maxItems, minimum, maximum, minItems } = shape;
  switch (type) {
    case 'string':
      return maxLength === undefined ? 'text' : `text, at most ${maxLength} characters`;
    case 'integer':
      return maximum === undefined ? 'whole number' : `whole number, ${minimum ?? 0} to ${maximum}`;
    case 'boolean':
      return '`true` or `false`';
    case 'array': {
      const limits = [
        ...(minItems === undefined ? [] : [`at least ${minItems}`]),
        ...(maxItems === undefined ? [] : [`at most ${maxItems}`]),
      ];
      const element = items === undefined ? 'values' : elementText(shapeOf(items));
      return [`list of ${element}`, ...limits].join(', ');
    }
    case 'object':
      return membersText(shape) ?? 'mapping of names to texts';
    default:
      throw new Error(`the reference has no words for the schema ${JSON.stringify(shape)}`);
  }
}

/** Returns the type of a mapping with a few members of different types; null for other mappings. */
function membersText({ properties = {} }: ShapeSchema): string | null {
  const members = Object.keys(properties).map((name) => ({ name, type: memberOf({ properties }, name).type }));
  if (new Set(members.map(({ type }) => type)).size < 2) return null;
  return `mapping of ${members.map(({ name, type }) => `\`${name}\` (${type})`).join(' and ')}`;
}

const elementText = (shape: ShapeSchema): string => {
  const { type, maxLength } = shape;
  const choices = choicesOf(shape);
  if (choices !== null) return choices.map((one) => `\`${one}\``).join(' and ');
  if (type !== 'string') throw new Error(`the reference has no words for a list of ${type}`);
  return maxLength === undefined ? 'texts' : `texts of at most ${maxLength} characters`;
};
