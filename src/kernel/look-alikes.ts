/**
 * Names that people cannot tell apart. A short form of the skeletons of Unicode's UTS 39: full-width and other compatibility
 * forms, digits of other scripts, and the letters of Cyrillic, Greek and Armenian that have the shape of a Latin one.
 */

/** Letters of other scripts, each behind the Latin letter that it looks like: Cyrillic, Greek and Armenian. */
const SHAPES =
  'aаcсeеiіjјoоpрsѕxхyуhһkкmмtтbвrгdԁlӏqԛwԝvѵnп' +
  'AАBВCСEЕHНIІJЈKКMМOОPРSЅTТXХYУIӀ' +
  'aαoοvνiιuυnηpρxχyγkκtτwωeεcϲ' +
  'AΑBΒEΕZΖHΗIΙKΚMΜNΝOΟPΡTΤXΧYΥ' +
  'hհnոuսoօgցlլqզ';

const LATIN: ReadonlyMap<string, string> = new Map(
  Array.from({ length: SHAPES.length / 2 }, (_, index) => [SHAPES[index * 2 + 1] ?? '', SHAPES[index * 2] ?? '']),
);

/** Names to compare another one with. */
export class LookAlikes {
  private readonly byKey = new Map<string, string>();

  constructor(names: Iterable<string>) {
    for (const name of names) for (const key of keysOf(name)) this.byKey.set(key, name);
  }

  /** Returns a name that people can take for this one, as `WEB-01`, `web-O1` and `web-０１` for `web-01`; else null. */
  like(name: string): string | null {
    for (const key of keysOf(name)) {
      const other = this.byKey.get(key);
      if (other !== undefined) return other;
    }
    return null;
  }
}

function keysOf(name: string): readonly string[] {
  const latin = latinOf(name);
  return [`case ${latin.toLowerCase()}`, `shape ${shapeOf(latin)}`];
}

/** Returns the name in ASCII as far as its characters have the shape of ASCII ones. */
function latinOf(name: string): string {
  if (/^[\u0000-\u007f]*$/.test(name)) return name;
  const plain = name.normalize('NFKD').replace(/[\p{Mn}\p{Cf}]/gu, '');
  return [...plain].map((char) => LATIN.get(char) ?? digitOf(char) ?? char).join('');
}

/** Returns the ASCII digit of a decimal digit of any script. Each script has its ten digits in a row, which begins after no digit. */
function digitOf(char: string): string | null {
  if (!/^\p{Nd}$/u.test(char)) return null;
  const code = char.codePointAt(0) ?? 0;
  let zero = code;
  while (code - zero < 9 && /^\p{Nd}$/u.test(String.fromCodePoint(zero - 1))) zero -= 1;
  return String(code - zero);
}

/** Returns the name with one character for each shape that several have in usual fonts. */
const shapeOf = (name: string): string =>
  name.replace(/[I1|]/g, 'l').replace(/[Oo]/g, '0').toLowerCase().replaceAll('rn', 'm').replaceAll('vv', 'w');
