/** Pictures of programs that people use, taken at many moments of what they really write. */
import { describe, expect } from 'vitest';
import { itNeeding } from '../../support/needing.js';
import { type Recording, record } from './recorded-program.js';
import { LONGEST, looksOfScreen, newScreen, SecondTerminal, write } from './second-terminal.js';

const TEXT = 'seq 1 300 | sed "s/.*/& the quick brown 漢字 fox 🎉 jumps/" > text';

const PROGRAMS: readonly (Recording & { readonly program: string })[] = [
  {
    program: 'vim',
    command: `${TEXT}; vim -n -c "syntax on" -c "set number mouse=a" text`,
    keys: ['50G', 'ihello \x1b', ':split\r', '\x17j20\x05', ':set hlsearch\r/fox\r'],
  },
  { program: 'less', command: `${TEXT}; less -N text`, keys: [' ', ' ', '/77\r', 'b'] },
  { program: 'top', command: 'top', keys: ['c', 'z'] },
  {
    program: 'tmux',
    command: 'tmux -f /dev/null new-session "sh -i"',
    cleanup: 'tmux kill-server',
    keys: ['seq 1 50\r', '\x02%', 'ls -la /\r', '\x02"', 'echo \u6f22\u5b57\r'],
  },
  {
    program: 'bash',
    command: 'bash --norc -i',
    keys: ['ls -la --color=always /\r', 'seq 1 40\r', 'tput smcup; echo alt\r'],
  },
];

/** Moments at which a client attaches. */
const MOMENTS = 25;

describe('a picture in the middle of a real program', () => {
  for (const { program, ...recording } of PROGRAMS) {
    itNeeding(program, 'script')(`shows ${program} as it is, and as it goes on`, async () => {
      const output = await record(recording);
      expect(output.length).toBeGreaterThan(500);
      for (let moment = 1; moment <= MOMENTS; moment += 1) {
        const at = Math.floor((output.length * moment) / MOMENTS);
        const screen = newScreen(80, 24);
        write(screen, output.subarray(0, at));
        // A sequence that is cut here is cancelled on both, as the rest of it comes later.
        write(screen, '\x18');
        const second = new SecondTerminal(80, 24).write(screen.picture(LONGEST));
        expect(second.looks()).toEqual(looksOfScreen(screen));
        write(screen, output.subarray(at));
        second.write(output.subarray(at));
        expect(second.looks()).toEqual(looksOfScreen(screen));
      }
    });
  }
});
