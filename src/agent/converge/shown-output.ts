/** What a script wrote, as it is journaled, reported and stored: without secrets, and of bounded size. */
import type { CommandResult } from '../../resources/command.js';
import type { Output } from '../../resources/result.js';

/** Characters of one stream in JSON: both together stay below what a frame of the link takes, however many escapes they need. */
const MAX_JSON = 300 * 1024;

const CUT = '\n… the middle is left out …\n';

export function shownOutput({ stdout, stderr, truncated, end }: CommandResult, scrub: OutputScrub): Output {
  const streams = [stdout, stderr].map((text) => bounded(scrubbed(text, truncated, scrub)));
  return {
    stdout: streams[0]?.text ?? '',
    stderr: streams[1]?.text ?? '',
    exit_code: end.how === 'exited' ? end.code : null,
    truncated: truncated || streams.some(({ isCut }) => isCut),
  };
}

/** How secrets are taken out of what a program wrote. */
export interface OutputScrub {
  whole(text: string): string;
  /** What stands before and behind a gap. */
  gap(before: string, behind: string): readonly [string, string];
}

function scrubbed(text: string, truncated: boolean, scrub: OutputScrub): string {
  const [, before, note, behind] = (truncated ? GAP.exec(text) : null) ?? [];
  if (before === undefined || note === undefined || behind === undefined) return scrub.whole(text);
  const [first, last] = scrub.gap(before, behind);
  return first + note + last;
}

/** What the Host writes in the place of the middle. */
const GAP = /^(.*?)(\n… \d+ bytes are left out …\n)(.*)$/s;

/** Most text is its own JSON; control characters take six characters each. */
function bounded(text: string): { readonly text: string; readonly isCut: boolean } {
  let half = Math.ceil(text.length / 2);
  let shown = text;
  while (jsonBytes(shown) > MAX_JSON) {
    half = Math.floor((half * MAX_JSON) / (jsonBytes(shown) + 1));
    shown = `${text.slice(0, half)}${CUT}${text.slice(text.length - half)}`;
  }
  return { text: shown, isCut: shown !== text };
}

const jsonBytes = (text: string): number => new TextEncoder().encode(JSON.stringify(text)).length;
