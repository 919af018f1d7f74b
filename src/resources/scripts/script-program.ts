/** The programs that run scripts, and the command lines for them. */
import type { Command } from '../command.js';
import type { Host } from '../host.js';

export const PROGRAMS = ['sh', 'bash', 'pwsh', 'powershell', 'cmd'] as const;
export type Program = (typeof PROGRAMS)[number];

interface ProgramFact {
  readonly platforms: readonly Host['platform'][];
  readonly argv: Command['argv'];
  readonly suffix: string;
  /** The text as the program reads it. */
  written(text: string): string;
}

const asItIs = (text: string): string => text;

const FACTS: Readonly<Record<Program, ProgramFact>> = {
  sh: { platforms: ['linux', 'macos'], argv: ['sh'], suffix: '.sh', written: asItIs },
  bash: { platforms: ['linux', 'macos'], argv: ['bash'], suffix: '.sh', written: asItIs },
  pwsh: {
    platforms: ['linux', 'macos', 'windows'],
    argv: ['pwsh', '-NoProfile', '-NonInteractive', '-File'],
    suffix: '.ps1',
    written: asItIs,
  },
  powershell: {
    platforms: ['windows'],
    argv: ['powershell', '-NoProfile', '-NonInteractive', '-ExecutionPolicy', 'Bypass', '-File'],
    suffix: '.ps1',
    // It takes a file without a byte order mark for one of the machine's old code page.
    written: (text) => `\ufeff${text}`,
  },
  cmd: {
    platforms: ['windows'],
    argv: ['cmd', '/d', '/c'],
    suffix: '.cmd',
    // It loses its labels when lines end otherwise.
    written: (text) => text.replaceAll(/\r?\n/g, '\r\n'),
  },
};

export const platformsOf = (program: Program): readonly Host['platform'][] => FACTS[program].platforms;

/** Runs a text as long as the agent grants scripts, and ends it with the run. */
export function scriptCommand(program: Program, text: string): Command {
  const { argv, suffix, written } = FACTS[program];
  return { argv, script: { text: written(text), suffix }, timeoutSecs: 'script', lifetime: 'end' };
}
