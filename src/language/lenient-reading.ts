/** What is read in another way than it is written, because what is meant is plain; each is reported. */
import { escapePointer } from '../kernel/validator.js';
import { hasExpression } from './expression.js';
import type { KindSet } from './kind-set.js';
import type { Located, LocatedMap, LocatedMember } from './located.js';
import type { MistakeList } from './mistake.js';
import { quoted } from './printable.js';

interface Reading {
  readonly kinds: KindSet;
  readonly mistakes: MistakeList;
}

/** Kinds below the empty `resource:` that they stand beside, paths without `.` components and slashes at the end. */
export function readLeniently(root: Located, { kinds, mistakes }: Reading): Located {
  const readOne = (node: Located, path: string): Located =>
    withPlainPath(withIndentedKind(node, path, { kinds, mistakes }), path, { kinds, mistakes });
  return mapItems(root, 'resources', '', (entry, path) => mapItems(readOne(entry, path), 'variants', path, readOne));
}

function withIndentedKind(node: Located, path: string, { kinds, mistakes }: Reading): Located {
  if (node.type !== 'map') return node;
  const resource = node.members.get('resource');
  const isEmpty = resource?.value.type === 'scalar' && resource.value.raw === '';
  const beside = [...node.members].filter(([name]) => kinds.has(name));
  const [first] = beside;
  if (!resource || !isEmpty || first === undefined) return node;
  const [name, { key }] = first;
  mistakes.error('misplaced_key', `"${name}" belongs below "resource": indent it by two more spaces`, path, key);
  const kept = [...node.members].filter(([member]) => !kinds.has(member) && member !== 'resource');
  const value: Located = { type: 'map', members: new Map(beside), start: key.start, end: key.start };
  return { ...node, members: new Map([...kept, ['resource', { key: resource.key, value }]]) };
}

/** `/etc/./web/` is `/etc/web`: both name the same file, and only one of them can be compared. */
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

/** Without what makes no difference; what is left may still be no path that can be managed. */
function plainPath(path: string): string {
  if (hasExpression(path)) return path;
  const separators = /^[A-Za-z]:/.test(path) ? '[\\\\/]' : '/';
  const plain = path
    .replace(new RegExp(`(${separators})(?:\\.${separators})+`, 'g'), '$1')
    .replace(new RegExp(`${separators}\\.?$`), '');
  // A root is left as it is written, and refused as what it is.
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
