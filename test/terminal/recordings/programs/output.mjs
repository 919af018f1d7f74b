/** An endless output that is known at each place: text, control sequences, and bytes that are no text. */
const BLOCK = Buffer.concat([
  Buffer.from('\x1b[32mnaïve\x1b[0m — 日本語 😀 plain text of a build that goes on and on\r\n'),
  Buffer.from([0xff, 0xc3, 0x28, 0x80, 0x0d, 0x0a]),
]);

/** @returns {Buffer} */
export function outputFrom(offset, length) {
  const bytes = Buffer.alloc(length);
  for (let at = 0; at < length; at += 1) bytes[at] = BLOCK[(offset + at) % BLOCK.length];
  return bytes;
}
