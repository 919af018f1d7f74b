/** Checks a module after parsing: lenient reading of common slips, then its shape, then its meaning. */
import * as Type from 'typebox';
import { escapePointer } from '../kernel/validator.js';
import { absenceOf, isAbsence, kindOfAbsence } from '../resources/absence-name.js';
import { checkShape } from './check-shape.js';
import { Budget, COMPARISONS, supportedAgents } from './clause.js';
import type { MistakeList, Place, TextLines } from './diagnostic.js';
import { hasExpression } from './expression.js';
import { belowResource } from './kind-choice.js';
import { isKind, type KindSet } from './kind-set.js';
import type { Located, LocatedMap, LocatedMember } from './located.js';
import { readOutline } from './outline.js';
import { quoted } from './printable.js';
import { checkVerify } from './rules/checks.js';
import { checkExpressions } from './rules/expressions.js';
import { checkIdentities } from './rules/identities.js';
import { checkCycles, checkIds } from './rules/references.js';
import { checkRepetitions } from './rules/repetitions.js';
import { checkShebangs } from './rules/shebangs.js';
import { checkTemplates } from './rules/templates.js';
import { checkChoice, checkSupports, checkVariants } from './rules/variants.js';
import { moduleSchemaWith } from './schema.js';

/** Schema of a module without the values of `resource`, which `readKindChoice` checks, and of checks, which `checkVerify` checks. */
const FRAME = moduleSchemaWith(Type.Unknown(), {
  script: Type.Unknown(),
  http: Type.Unknown(),
  tcp: Type.Unknown(),
  unit: Type.Unknown(),
});

interface ModuleToCheck {
  readonly text: string;
  readonly lines: TextLines;
  readonly kinds: KindSet;
  readonly mistakes: MistakeList;
}

/** Reports all mistakes and returns the module after lenient reading. */
export function checkModule(written: Located, { text, lines, kinds, mistakes }: ModuleToCheck): Located {
  const root = readLeniently(written, { kinds, mistakes });
  checkShape(FRAME, root, {
    mistakes,
    path: '',
    label: 'a module',
    expressions: false,
    elsewhere: belowResource(kinds),
  });
  if (root.type !== 'map') return root;
  const outline = readOutline(root, kinds, mistakes);
  const context = { outline, mistakes, lineOf: (place: Place) => lines.positionAt(place.start).line };
  const budget = new Budget(COMPARISONS);
  const reach = supportedAgents(
    outline.supports.map(({ clause }) => clause),
    budget,
  );
  checkChoice(context, kinds);
  checkIds(context);
  checkCycles(context);
  checkTemplates(context, text);
  checkSupports(context);
  checkVariants(context, reach);
  checkRepetitions(context);
  checkIdentities(context, reach);
  checkVerify(context);
  checkShebangs(context);
  checkExpressions(context, text);
  if (budget.exhausted) {
    const message = 'too many variants to compare with each other; split the module';
    mistakes.error('too_complex', message, '/resources', root.members.get('resources')?.key ?? root);
  }
  return root;
}

interface Reading {
  readonly kinds: KindSet;
  readonly mistakes: MistakeList;
}

/** Corrects and reports slips with a clear intention: kinds beside an empty `resource:`, and paths with `.` or a trailing slash. */
function readLeniently(root: Located, { kinds, mistakes }: Reading): Located {
  const reading = { kinds, mistakes };
  const readOne = (node: Located, path: string): Located =>
    withPlainPath(withIndentedKind(node, path, reading), path, reading);
  const readEntry = (entry: Located, path: string): Located => {
    const plain = withPlainAbsences(entry, path, reading);
    return mapItems(readOne(withResource(withAbsent(plain), kinds), path), 'variants', path, readOne);
  };
  return mapItems(root, 'resources', '', (entry, path) =>
    mapItems(readEntry(entry, path), 'resources', path, readEntry),
  );
}

/** Keys that say themselves what an entry makes. */
const MAKING = ['resource', 'variants', 'resources'];

/** Reads `absent: {KIND: …}` as a resource of the kind's absence. */
function withAbsent(node: Located): Located {
  if (node.type !== 'map' || MAKING.some((name) => node.members.has(name))) return node;
  const absent = node.members.get('absent');
  if (absent?.value.type !== 'map' || absent.value.members.size === 0) return node;
  const choices = [...absent.value.members].map(([name, member]) => [absenceOf(name), member] as const);
  const value: Located = { ...absent.value, members: new Map(choices) };
  const members = [...node.members].map(([name, one]) =>
    name === 'absent' ? (['resource', { key: one.key, value }] as const) : ([name, one] as const),
  );
  return { ...node, members: new Map(members) };
}

/** Reports an absence by its name in reports, which no module writes, and reads it as it is meant. */
function withPlainAbsences(node: Located, path: string, { mistakes }: Reading): Located {
  if (node.type !== 'map') return node;
  const resource = node.members.get('resource')?.value;
  for (const { members } of [node, ...(resource?.type === 'map' ? [resource] : [])]) {
    for (const [name, member] of members) {
      if (!isAbsence(name)) continue;
      mistakes.error('unknown_kind', `an absence is written "absent: {${kindOfAbsence(name)}: …}"`, path, member.key);
      const value: Located = { type: 'map', members: new Map([[kindOfAbsence(name), member]]), ...placeOfKey(member) };
      const kept = [...node.members].filter(([other]) => other !== name && other !== 'resource');
      return { ...node, members: new Map([...kept, ['absent', { key: member.key, value }]]) };
    }
  }
  return node;
}

const placeOfKey = ({ key }: LocatedMember) => ({ start: key.start, end: key.start });

/** Reads an entry with a kind in place of `resource`, such as `package-apt: {name: nginx}`, as one with `resource`. */
function withResource(node: Located, kinds: KindSet): Located {
  if (node.type !== 'map' || MAKING.some((name) => node.members.has(name))) return node;
  const [found, another] = [...node.members].filter(([name]) => isKind(kinds, name));
  if (found === undefined || another !== undefined) return node;
  const [name, { key, value }] = found;
  const choice: Located = { type: 'map', members: new Map([[name, { key, value }]]), start: key.start, end: key.start };
  const members = [...node.members].map(([member, one]) =>
    member === name ? (['resource', { key, value: choice }] as const) : ([member, one] as const),
  );
  return { ...node, members: new Map(members) };
}

function withIndentedKind(node: Located, path: string, { kinds, mistakes }: Reading): Located {
  if (node.type !== 'map') return node;
  const resource = node.members.get('resource');
  const isEmpty = resource?.value.type === 'scalar' && resource.value.raw === '';
  const beside = [...node.members].filter(([name]) => isKind(kinds, name));
  const [first] = beside;
  if (!resource || !isEmpty || first === undefined) return node;
  const [name, { key }] = first;
  mistakes.error('misplaced_key', `"${name}" belongs below "resource": indent it by two more spaces`, path, key);
  const kept = [...node.members].filter(([member]) => !isKind(kinds, member) && member !== 'resource');
  const value: Located = { type: 'map', members: new Map(beside), start: key.start, end: key.start };
  return { ...node, members: new Map([...kept, ['resource', { key: resource.key, value }]]) };
}

/** Rewrites `/etc/./web/` as `/etc/web`, so that equal paths compare equal. */
function withPlainPath(node: Located, path: string, { kinds, mistakes }: Reading): Located {
  return mapMember(node, 'resource', (choice) => {
    const [[name] = ['']] = choice.type === 'map' ? choice.members : [];
    if (kinds.get(name)?.kind.family !== 'path') return choice;
    return mapMember(choice, name, (body) =>
      mapMember(body, 'path', (written) => {
        if (written.type !== 'scalar' || typeof written.value !== 'string') return written;
        const value = plainPath(written.value);
        if (value === written.value) return written;
        const message = `this path is read as ${quoted(value)}; write it so`;
        mistakes.warning('path_rewritten', message, `${path}/resource/${escapePointer(name)}/path`, written);
        return { ...written, value };
      }),
    );
  });
}

/** Removes redundant parts of a path. The result may still be no manageable path. */
function plainPath(path: string): string {
  if (hasExpression(path)) return path;
  const separators = /^[A-Za-z]:/.test(path) ? '[\\\\/]' : '/';
  const plain = path
    .replace(new RegExp(`(${separators})(?:\\.${separators})+`, 'g'), '$1')
    .replace(new RegExp(`${separators}\\.?$`), '');
  // A root stays unchanged and is refused later.
  return plain === '' || /^[A-Za-z]:$/.test(plain) ? path : plain;
}

function mapMember(node: Located, name: string, change: (value: Located) => Located): Located {
  const member = node.type === 'map' ? node.members.get(name) : undefined;
  if (node.type !== 'map' || member === undefined) return node;
  const value = change(member.value);
  return value === member.value ? node : withMember(node, name, { ...member, value });
}

const withMember = (node: LocatedMap, name: string, member: LocatedMember): LocatedMap => ({
  ...node,
  members: new Map(node.members).set(name, member),
});

function mapItems(
  node: Located,
  name: string,
  path: string,
  change: (item: Located, path: string) => Located,
): Located {
  return mapMember(node, name, (list) => {
    if (list.type !== 'list') return list;
    const items = list.items.map((item, index) => change(item, `${path}/${name}/${index}`));
    return items.every((item, index) => item === list.items[index]) ? list : { ...list, items };
  });
}
