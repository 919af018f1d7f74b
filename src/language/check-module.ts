/** Checks a module after parsing: lenient reading of common slips, then its shape, then its meaning. */
import * as Type from 'typebox';
import { escapePointer } from '../kernel/validator.js';
import { checkShape } from './check-shape.js';
import { Budget, COMPARISONS, supportedAgents } from './clause.js';
import type { MistakeList, Place, TextLines } from './diagnostic.js';
import { hasExpression } from './expression.js';
import type { UsedFiles } from './files-beside.js';
import { belowResource } from './kind-choice.js';
import type { KindSet } from './kind-set.js';
import type { Located, LocatedMap, LocatedMember } from './located.js';
import { readNames, readNamesInGroup, refuseNames } from './name-lists.js';
import { readOutline } from './outline.js';
import { quoted } from './printable.js';
import { checkVerify } from './rules/checks.js';
import { checkExpressions } from './rules/expressions.js';
import { checkFiles, insideOf } from './rules/files.js';
import { checkIdentities } from './rules/identities.js';
import { checkCycles, checkIds } from './rules/references.js';
import { checkRepetitions } from './rules/repetitions.js';
import { checkShebangs } from './rules/shebangs.js';
import { checkTemplates } from './rules/templates.js';
import { checkChoice, checkSupports, checkVariants } from './rules/variants.js';
import { moduleSchemaWith } from './schema.js';
import { type Reading, readShortForm } from './short-forms.js';

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
  readonly files: UsedFiles;
}

/** Reports all mistakes and returns the module after lenient reading. */
export function checkModule(written: Located, { text, lines, kinds, mistakes, files }: ModuleToCheck): Located {
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
  checkFiles(context, files);
  checkTemplates(context, { text, files });
  checkSupports(context);
  checkVariants(context, reach);
  checkRepetitions(context);
  checkIdentities(context, reach, insideOf(kinds, files));
  checkVerify(context);
  checkShebangs(context);
  checkExpressions(context, text);
  if (budget.exhausted) {
    const message = 'too many variants to compare with each other; split the module';
    mistakes.error('too_complex', message, '/resources', root.members.get('resources')?.key ?? root);
  }
  return root;
}

/** Reads short forms of entries, and corrects and reports slips with a clear intention, such as paths with `.` or a trailing slash. */
function readLeniently(root: Located, reading: Reading): Located {
  const readVariant = (node: Located, path: string): Located =>
    refuseNames(withPlainPath(readShortForm(node, path, reading), path, reading), path, reading);
  const readEntry = (node: Located, path: string): Located => {
    const entry = withPlainPath(readShortForm(node, path, reading), path, reading);
    return mapItems(entry, 'variants', path, readVariant);
  };
  const readMember = (node: Located, path: string) => readNamesInGroup(readEntry(node, path), path, reading);
  return mapItems(root, 'resources', '', (node, path) => {
    const entry = readEntry(node, path);
    const isGroup = entry.type === 'map' && entry.members.has('resources');
    return isGroup ? flatMapItems(entry, 'resources', path, readMember) : readNames(entry, path, reading);
  });
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

const mapItems = (
  node: Located,
  name: string,
  path: string,
  change: (item: Located, path: string) => Located,
): Located => flatMapItems(node, name, path, (item, at) => [change(item, at)]);

function flatMapItems(
  node: Located,
  name: string,
  path: string,
  change: (item: Located, path: string) => readonly Located[],
): Located {
  return mapMember(node, name, (list) => {
    if (list.type !== 'list') return list;
    const items = list.items.flatMap((item, index) => change(item, `${path}/${name}/${index}`));
    const isSame = items.length === list.items.length && items.every((item, index) => item === list.items[index]);
    return isSame ? list : { ...list, items };
  });
}
