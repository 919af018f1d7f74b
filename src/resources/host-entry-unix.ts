/** `host-entry-unix`: the addresses of one host name in /etc/hosts. */
import * as Type from 'typebox';
import { parseIpAddress } from '../kernel/ip-network.js';
import { closed, optional } from '../kernel/schema.js';
import { defineFileEdit } from './edits/file-edit.js';
import { insertAt, lineNumbers, positionsOf, type TextLines } from './edits/text-lines.js';
import type { BodyProblem } from './kind.js';

const HOSTS = '/etc/hosts';
const NAME = '^[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?$';

const nameField = Type.String({
  pattern: NAME,
  maxLength: 253,
  description: 'Host name such as "db.example.net"',
});

/** Members of the absence. */
export const hostEntryName = { name: nameField } as const;

const schema = closed({
  name: nameField,
  addresses: Type.Array(Type.String({ minLength: 1, description: 'An IPv4 or IPv6 address' }), {
    minItems: 1,
    maxItems: 16,
    description: 'Its addresses, one line each',
  }),
  aliases: optional(
    Type.Array(Type.String({ pattern: NAME, maxLength: 253, description: 'A host name' }), {
      maxItems: 32,
      description: 'Further names on the same lines',
    }),
  ),
});

/** An absence has the name alone. */
type HostEntryBody = Omit<Type.Static<typeof schema>, 'addresses'> & { readonly addresses?: readonly string[] };

export const hostEntryUnix = defineFileEdit<HostEntryBody>({
  kind: 'host-entry-unix',
  schema,
  check: ({ addresses, aliases, name }) => [
    ...(addresses ?? []).flatMap((address, at) => checkAddress(address, `/addresses/${at}`)),
    ...((aliases ?? []).some((alias) => same(alias, name))
      ? [{ path: '/aliases', message: 'an alias is another name than the name itself' }]
      : []),
  ],
  path: () => HOSTS,
  part: ({ name }) => name,
  creates: () => true,
  has: ({ name }, lines) => ownPositions(name, lines).length > 0,

  put({ name, addresses = [], aliases }, lines) {
    const names = [name, ...(aliases ?? [])].join(' ');
    const wanted = addresses.map((address) => `${address} ${names}`);
    const own = ownPositions(name, lines);
    const present = own.map((at) => wordsOf(lines.lines[at]?.text ?? '').join(' '));
    if (present.join('\n') === wanted.join('\n')) return null;
    const others = positionsOf(lines, (line) =>
      wordsOf(line)
        .slice(2)
        .some((word) => same(word, name)),
    );
    if (others.length > 0) {
      const refusal = `${name} is a further name of another host on line ${lineNumbers(others)} of ${HOSTS}, which would count beside this one; declare that host with its aliases, or take the name out there`;
      return { refusal };
    }
    const gone = new Set(own);
    const rest = { ...lines, lines: lines.lines.filter((_, at) => !gone.has(at)) };
    const place = own[0] ?? rest.lines.length;
    const change = {
      field: 'addresses',
      before: present.length === 0 ? null : present.join(', '),
      after: wanted.join(', '),
    };
    return { lines: insertAt(rest, place, wanted), changes: [change] };
  },

  take({ name, addresses }, lines) {
    const own = new Set(ownPositions(name, lines));
    const rest = lines.lines.filter((_, at) => !own.has(at));
    // An absent name is no alias of another host either.
    const bare =
      addresses === undefined ? rest.map((line) => ({ ...line, text: withoutAlias(line.text, name) })) : rest;
    const isSame = bare.length === lines.lines.length && bare.every(({ text }, at) => text === lines.lines[at]?.text);
    return isSame ? null : { ...lines, lines: bare };
  },
});

const same = (one: string, other: string): boolean => one.toLowerCase() === other.toLowerCase();

/** Returns the address and the names on a line, without its comment. */
function wordsOf(line: string): readonly string[] {
  const [text = ''] = line.split('#', 1);
  return text.split(/\s+/).filter((word) => word !== '');
}

/** Returns the positions of the lines whose first name it is. */
const ownPositions = (name: string, lines: TextLines): readonly number[] =>
  positionsOf(lines, (line) => same(wordsOf(line)[1] ?? '', name));

/** Takes a further name out of a line, with the blanks before it. */
function withoutAlias(line: string, name: string): string {
  if (
    !wordsOf(line)
      .slice(2)
      .some((word) => same(word, name))
  )
    return line;
  const at = line.indexOf('#');
  const [text, comment] = at < 0 ? [line, ''] : [line.slice(0, at), line.slice(at)];
  const parts = text.split(/(\s+)/);
  const kept = parts.filter((part, index) => {
    const isAlias = (word: string | undefined) => word !== undefined && same(word, name);
    return !isAlias(part) && !(/^\s+$/.test(part) && isAlias(parts[index + 1]));
  });
  return kept.join('') + comment;
}

const checkAddress = (address: string, path: string): readonly BodyProblem[] =>
  parseIpAddress(address) === null || !/^[0-9A-Fa-f:.%a-z]+$/.test(address)
    ? [{ path, message: `"${address.slice(0, 64)}" is no IP address` }]
    : [];
