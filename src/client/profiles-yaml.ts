/** Reads and edits profiles as YAML. Loaded only when needed, because the YAML library takes a third of a command's start. */
import { type Document, isMap, isScalar, LineCounter, parseDocument } from 'yaml';
import { Fault } from '../kernel/fault.js';
import { isProfilesFile, PROFILE_FIELDS, type Profile, type ProfilesFile, problemsOfProfiles } from './profile-file.js';

/** Parses the file. Throws `invalid_config` with every mistake, its line and column. */
export function parseProfiles(source: string, path: string): ProfilesFile {
  const lines = new LineCounter();
  const document = parseDocument(source, { lineCounter: lines });
  const syntax = document.errors.map(({ pos, message }) => ({ offset: pos[0], path: [], message: firstLine(message) }));
  const value: unknown = syntax.length > 0 ? {} : (document.toJS() ?? {});
  if (syntax.length === 0 && isProfilesFile(value)) return value;
  const content = problemsOfProfiles(value).map((problem) => ({
    ...problem,
    offset: offsetOf(document, problem.path),
  }));
  const errors = [...syntax, ...content].map(({ path: names, message, offset }) => {
    const { line, col } = lines.linePos(offset);
    return { path: names.map((name) => `/${name}`).join(''), message, line, column: col };
  });
  const list = errors.map(({ line, column, message }) => `${path}:${line}:${column}: ${message}`).join('\n');
  throw new Fault('invalid_config', `the profiles cannot be used:\n${list}`, { errors, hint: `correct ${path}` });
}

/** Returns the text with the profiles of `file` and the old comments. `source` must be valid. */
export function editProfiles(source: string, file: ProfilesFile): string {
  const document: Document = parseDocument(source);
  if (!isMap(document.contents)) document.contents = document.createNode({});
  if (file.default === undefined) document.delete('default');
  else document.set('default', file.default);
  const profiles = document.get('profiles');
  if (!isMap(profiles)) document.set('profiles', document.createNode({}));
  for (const { key } of isMap(profiles) ? [...profiles.items] : []) {
    if (!Object.hasOwn(file.profiles ?? {}, nameOf(key))) document.deleteIn(['profiles', nameOf(key)]);
  }
  for (const [name, profile] of Object.entries(file.profiles ?? {})) putProfile(document, name, profile);
  return document.toString();
}

function putProfile(document: Document, name: string, profile: Profile): void {
  const path = ['profiles', name];
  if (!document.hasIn(path)) {
    document.setIn(path, document.createNode(profile));
    return;
  }
  for (const field of Object.keys(PROFILE_FIELDS)) {
    const value = Object.entries(profile).find(([key]) => key === field)?.[1];
    if (value === undefined) document.deleteIn([...path, field]);
    else document.setIn([...path, field], value);
  }
}

/** Returns the offset of a key in the source, or of the nearest key above it. */
function offsetOf(document: Document, path: readonly string[]): number {
  let offset = 0;
  let node: unknown = document.contents;
  for (const name of path) {
    const pair = isMap(node) ? node.items.find(({ key }) => nameOf(key) === name) : undefined;
    if (!pair) break;
    offset = isScalar(pair.key) ? (pair.key.range?.[0] ?? offset) : offset;
    node = pair.value;
  }
  return offset;
}

const nameOf = (key: unknown): string => String(isScalar(key) ? key.value : key);

const firstLine = (message: string): string => message.split('\n')[0] ?? message;
