/** The logger of the long-running programs: JSON lines through pino, or lines for people. */
import chalk from 'chalk';
import { type DestinationStream, type Logger as Pino, pino } from 'pino';
import { escapeJson, sanitize } from '../src/cli/render/terminal-text.js';
import type { LogFields, Logger } from '../src/kernel/logger.js';

interface LogOptions {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  /** `auto`: pretty on a terminal, else JSON. */
  readonly format: 'auto' | 'json' | 'pretty';
  readonly destination: NodeJS.WritableStream & { readonly isTTY?: boolean };
}

/** A logger whose level can be changed while it runs. */
interface LeveledLogger extends Logger {
  setLevel(level: LogOptions['level']): void;
}

export function createLogger({ level, format, destination }: LogOptions): LeveledLogger {
  const isPretty = format === 'pretty' || (format === 'auto' && destination.isTTY === true);
  const stream = isPretty ? prettyStream(destination) : escapedStream(destination);
  const root = pino(
    {
      level,
      base: undefined,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    stream,
  );
  return {
    ...wrap(root),
    setLevel: (next) => {
      root.level = next;
    },
  };
}

function wrap(log: Pino): Logger {
  const write =
    (level: 'debug' | 'info' | 'warn' | 'error') =>
    (message: string, fields: LogFields = {}) =>
      log[level](fields, message);
  return {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    child: (fields) => wrap(log.child(fields)),
  };
}

const COLOURS: Readonly<Record<string, (text: string) => string>> = {
  debug: chalk.gray,
  info: chalk.green,
  warn: chalk.yellow,
  error: chalk.red,
};

/** Formats a line as `12:34:56 info  message  key=value …`. */
function prettyStream(destination: NodeJS.WritableStream): DestinationStream {
  const write = (line: string) => {
    const { level, time, msg, ...fields } = JSON.parse(line) as Record<string, unknown>;
    const label = String(level);
    const colour = COLOURS[label] ?? ((text: string) => text);
    const rest = Object.entries(fields).map(([key, value]) => chalk.dim(`${shown(key)}=`) + shown(value));
    const clock = String(time).slice(11, 19);
    const words = [chalk.dim(clock), colour(label.padEnd(5)), sanitize(String(msg)), ...rest];
    destination.write(`${words.join(' ')}\n`);
  };
  return { write };
}

/** Writes JSON lines with escaped control characters: hosts and agents choose some of the text, and a terminal would obey it. */
const escapedStream = (destination: NodeJS.WritableStream): DestinationStream => ({
  write: (line) => destination.write(escapeJson(line)),
});

/** Quotes a value unless it is a plain word, so that it cannot imitate other fields or move the cursor. */
function shown(value: unknown): string {
  if (typeof value === 'string' && /^[\w.:/@+-]+$/.test(value)) return value;
  return escapeJson(JSON.stringify(value) ?? 'undefined');
}
