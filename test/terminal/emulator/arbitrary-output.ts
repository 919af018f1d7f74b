/** Output as programs write it, at random: text, looks, movements, margins, screens, modes. */
import fc from 'fast-check';

const small = fc.nat({ max: 14 });
const position = fc.tuple(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 22 }));

/** Lines that are not plain; the library mixes them up when they are saved with the cursor. */
const underlined = fc
  .constantFrom('21', '4:3', '4:5', '4;58:5:9', '4:2;58:2::1:2:3')
  .map((code) => `\x1b[${code}mlined\x1b[0m`);

const text = fc.oneof(
  underlined,
  fc.string({ minLength: 1, maxLength: 30, unit: fc.constantFrom(...'abcdefgh xyz0123456789~`qxlkmj') }),
  fc.constantFrom(
    '漢字かな',
    '한글',
    '🎉',
    '👩‍👩‍👧',
    '✅',
    'é',
    'e\u0301',
    'n\u0303\u0323',
    '┌─┐│└┘█',
    'ﬁ',
    '⚠️',
    'x\u200by',
  ),
  fc.constantFrom('a very long line that goes on and on and wraps around the right margin of it'),
);

const color = fc.oneof(
  fc.integer({ min: 30, max: 37 }).map(String),
  fc.integer({ min: 40, max: 47 }).map(String),
  fc.integer({ min: 90, max: 97 }).map(String),
  fc.integer({ min: 100, max: 107 }).map(String),
  fc.tuple(fc.constantFrom(38, 48), fc.nat({ max: 255 })).map(([layer, index]) => `${layer};5;${index}`),
  fc
    .tuple(fc.constantFrom(38, 48), fc.nat({ max: 255 }), fc.nat({ max: 255 }), fc.nat({ max: 255 }))
    .map(([layer, ...rgb]) => `${layer};2;${rgb.join(';')}`),
  fc.constantFrom('39', '49'),
);
const flag = fc.constantFrom(
  '0',
  '1',
  '2',
  '3',
  '4',
  '5',
  '7',
  '8',
  '9',
  '22',
  '23',
  '24',
  '25',
  '27',
  '28',
  '29',
  '53',
  '55',
);
const looks = fc
  .array(fc.oneof(color, flag), { minLength: 1, maxLength: 3 })
  .map((codes) => `\x1b[${codes.join(';')}m`);

const movement = fc.oneof(
  position.map(([row, col]) => `\x1b[${row};${col}H`),
  fc.tuple(small, fc.constantFrom(...'ABCDEFGda')).map(([count, final]) => `\x1b[${count}${final}`),
  fc.constantFrom(
    '\r',
    '\n',
    '\r\n',
    '\b',
    '\t',
    '\x1bD',
    '\x1bM',
    '\x1bE',
    '\x1b7',
    '\x1b8',
    '\x1b[s',
    '\x1b[u',
    '\x1b[3I',
    '\x1b[2Z',
  ),
);

const change = fc.oneof(
  fc.tuple(small, fc.constantFrom(...'@LMPSTXb')).map(([count, final]) => `\x1b[${count}${final}`),
  fc.constantFrom('\x1b[J', '\x1b[1J', '\x1b[2J', '\x1b[K', '\x1b[1K', '\x1b[2K', '\x1b#8', "\x1b[2'}", "\x1b[2'~"),
);

const margins = fc.oneof(
  fc
    .tuple(fc.integer({ min: 1, max: 8 }), fc.integer({ min: 1, max: 14 }))
    .map(([top, bottom]) => `\x1b[${top};${bottom}r`),
  fc.constant('\x1b[r'),
);

const mode = fc.oneof(
  fc
    .tuple(
      fc.constantFrom(1, 7, 9, 12, 25, 45, 66, 1000, 1002, 1003, 1004, 1006, 1016, 2004, 2026),
      fc.constantFrom('h', 'l'),
    )
    .map(([number, final]) => `\x1b[?${number}${final}`),
  fc.constantFrom('\x1b[4h', '\x1b[4l', '\x1b[20h', '\x1b[20l', '\x1b=', '\x1b>'),
  fc.nat({ max: 6 }).map((style) => `\x1b[${style} q`),
);

const screens = fc.constantFrom(
  '\x1b[?1049h',
  '\x1b[?1049l',
  '\x1b[?1047h',
  '\x1b[?1047l',
  '\x1b[?47h',
  '\x1b[?47l',
  '\x1b[?1048h',
  '\x1b[?1048l',
);

/** Standard again afterwards: the library mixes up those that are saved with the cursor. */
const charsets = fc.constantFrom('\x1b(0lqk\x1b(B', '\x1b)0\x0exqx\x0f', '\x1b(A#\x1b(B', '\x1b*0\x1bnlk\x0f');

const rare = fc.constantFrom('\x1bc', '\x1b[!p', '\x1b[3g', '\x1bH', '\x1b[?6h', '\x1b[?6l');

const strings = fc.constantFrom(
  '\x1b]0;a title\x07',
  '\x1b]2;another\x1b\\',
  '\x1b]52;c;aGk=\x07',
  '\x1b]8;;http://x\x07link\x1b]8;;\x07',
  '\x1bP$qm\x1b\\',
  '\x1b[c',
  '\x1b[6n',
  '\x1b_apc\x1b\\',
);

const piece = fc.oneof(
  { weight: 8, arbitrary: text },
  { weight: 5, arbitrary: looks },
  { weight: 5, arbitrary: movement },
  { weight: 3, arbitrary: change },
  { weight: 2, arbitrary: margins },
  { weight: 2, arbitrary: mode },
  { weight: 1, arbitrary: screens },
  { weight: 1, arbitrary: charsets },
  { weight: 1, arbitrary: rare },
  { weight: 1, arbitrary: strings },
);

/** Whole sequences. */
export const arbitraryOutput: fc.Arbitrary<string> = fc
  .array(piece, { minLength: 1, maxLength: 60 })
  .map((pieces) => pieces.join(''));

/** Output that may have left a terminal as it is: without tab stops, which cannot be reset everywhere, and in the middle of something. */
export const arbitraryDirt: fc.Arbitrary<string> = fc
  .tuple(arbitraryOutput, fc.constantFrom('', '\x1b', '\x1b[3', '\x1b]0;tit', '\x1bPq', '\xc3', '\x1b[?1;'))
  .map(([output, rest]) => output.replaceAll('\x1bH', '').replaceAll('\x1b[3g', '') + rest);
