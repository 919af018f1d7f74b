/** Reads `names: [a, b]` of a package as one resource for each name, all of which the entry's id means. */
import { escapePointer } from '../kernel/validator.js';
import { hasExpression } from './expression.js';
import type { Located, LocatedMap, LocatedMember } from './located.js';
import { OPEN } from './parse-expression.js';
import { MAX_NAMES } from './schema.js';
import type { Reading } from './short-forms.js';

/** Members of a body that belong to one package. */
const OF_ONE = ['source', 'url', 'sha256'];

/** Reads an entry with a list of names as a group. */
export function readNames(entry: Located, path: string, reading: Reading): Located {
  const bodies = bodiesOf(entry, path, reading);
  if (bodies === null || entry.type !== 'map') return entry;
  const { key } = entry.members.get('resource') ?? { key: entry };
  const label = [...entry.members].filter(([name]) => name === 'name');
  const items = bodies.map(
    (value): LocatedMap => ({ ...entry, members: new Map([...label, ['resource', { key, value }]]) }),
  );
  const own = [...entry.members].filter(([name]) => !['resource', 'name'].includes(name));
  const list: LocatedMember = { key, value: { type: 'list', items, start: key.start, end: key.start } };
  return { ...entry, members: new Map([...own, ['resources', list]]) };
}

/** Reads a resource of a group with a list of names as several resources of the group. */
export function readNamesInGroup(member: Located, path: string, reading: Reading): readonly Located[] {
  const bodies = bodiesOf(member, path, reading);
  if (bodies === null || member.type !== 'map') return [member];
  const { key } = member.members.get('resource') ?? { key: member };
  return bodies.map((value) => ({ ...member, members: new Map(member.members).set('resource', { key, value }) }));
}

/** Reports a list of names in a variant, and reads it as its first name. */
export function refuseNames(variant: Located, path: string, reading: Reading): Located {
  const found = listIn(variant, reading);
  if (found === null) return variant;
  const { entry, names, pointer, withName } = found;
  const message = '"names" cannot stand in a variant; write an entry for each list, with "if" in place of "when"';
  reading.mistakes.error('invalid_value', message, `${path}${pointer}/names`, names.key);
  const [first = names.value] = names.value.type === 'list' ? names.value.items : [];
  return { ...entry, members: new Map(entry.members).set('resource', withName(first)) };
}

/** Returns the values of `resource` for each name of an entry; null for an entry without a list of names. */
function bodiesOf(entry: Located, path: string, reading: Reading): readonly Located[] | null {
  const found = listIn(entry, reading);
  if (found === null) return null;
  const { names, body, pointer, withName } = found;
  const report = (message: string, place: LocatedMember['key'], at = '/names') =>
    reading.mistakes.error('invalid_value', message, `${path}${pointer}${at}`, place);
  const other = body.members.get('name');
  if (other === names) report('several packages stand in "names"; write it in place of "name"', names.key, '/name');
  else if (other !== undefined)
    report('"name" is for one package and "names" for several; leave one out', other.key, '/name');
  for (const field of OF_ONE) {
    const member = body.members.get(field);
    if (member !== undefined)
      report(
        `"${field}" belongs to one package; give it an entry of its own with "name"`,
        member.key,
        `/${escapePointer(field)}`,
      );
  }
  const { value } = names;
  if (value.type === 'list' && value.items.length > 0) {
    if (value.items.length > MAX_NAMES) report(`"names" holds more than ${MAX_NAMES} names`, names.key);
    return value.items.slice(0, MAX_NAMES).map((item) => withName(item).value);
  }
  report(problemOf(value), value.type === 'list' ? names.key : value);
  return [withName(value.type === 'list' ? { ...value, type: 'scalar', value: 'names', raw: 'names' } : value).value];
}

function problemOf(value: Located): string {
  if (value.type === 'list') return '"names" is empty; name at least one package, or leave the entry out';
  if (value.type === 'scalar' && typeof value.value === 'string' && hasExpression(value.value)) {
    return `"names" is a list of texts; for a list of an input, write for_each: inputs.NAME, and name: "${OPEN} each.key }}"`;
  }
  return '"names" must be a list, such as [curl, git]';
}

interface NameList {
  readonly entry: LocatedMap;
  readonly body: LocatedMap;
  readonly names: LocatedMember;
  /** JSON pointer of the body in the entry. */
  readonly pointer: string;
  /** Returns the value of `resource` with one name in place of the list. */
  withName(name: Located): LocatedMember;
}

/** Returns the list of names in the body of an entry; null for none. */
function listIn(entry: Located, { kinds }: Reading): NameList | null {
  const resource = entry.type === 'map' ? entry.members.get('resource') : undefined;
  if (entry.type !== 'map' || resource?.value.type !== 'map') return null;
  const choice = resource.value;
  const [[kind, chosen] = ['', undefined], second] = choice.members;
  if (chosen?.value.type !== 'map' || second !== undefined || kinds.get(kind)?.listed !== true) return null;
  const body = chosen.value;
  const names = body.members.get('names') ?? nameAsList(body);
  if (names === undefined) return null;
  const kept = [...body.members].filter(([name]) => name !== 'names' && name !== 'name' && !OF_ONE.includes(name));
  return {
    entry,
    body,
    names,
    pointer: `/resource/${escapePointer(kind)}`,
    withName(name) {
      const value: Located = { ...body, members: new Map([['name', { key: names.key, value: name }], ...kept]) };
      return { key: resource.key, value: { ...choice, members: new Map([[kind, { ...chosen, value }]]) } };
    },
  };
}

/** Returns `name` where it holds a list, which is meant as `names`. */
function nameAsList({ members }: LocatedMap): LocatedMember | undefined {
  const name = members.get('name');
  return name?.value.type === 'list' && name.value.items.length > 0 ? name : undefined;
}
