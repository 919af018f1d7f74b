/** Formats single values for people. */
import type { Agent } from '../contract/agents.js';
import { type Span, styled, type TableCell } from './outcome.js';

export const NONE: Span = styled('dim', '-');

/** Formats Unix seconds as `2025-03-01T12:00:00Z`, which `--after` accepts; 0 and null mean never and give ''. */
export const formatTime = (seconds: number | null): string =>
  seconds ? new Date(seconds * 1000).toISOString().replace('.000Z', 'Z') : '';

export type TimeCell = (seconds: number | null) => TableCell;

/** Returns how a table shows times: `3 min ago`, `in 2 h`, and with `-o wide` the time itself. `now` is Unix milliseconds. */
export const timeCells =
  (now: number, { output }: { readonly output: string }): TimeCell =>
  (seconds) => {
    if (!seconds) return NONE;
    const text = output === 'wide' ? formatTime(seconds) : formatDistance(seconds, now);
    return { text, order: seconds };
  };

/** Returns how long something took as a cell of a table; the sign for none while it goes on. Times are Unix seconds. */
export function tookCell(span: { readonly started_at: number; readonly finished_at: number | null }): TableCell {
  if (span.finished_at === null) return NONE;
  const seconds = Math.max(0, span.finished_at - span.started_at);
  return { text: formatDuration(seconds), order: seconds };
}

/** Formats a time as `3 min ago` or `in 2 h`. `seconds` is Unix seconds, `now` Unix milliseconds. */
export function formatDistance(seconds: number, now: number): string {
  const ahead = seconds - Math.floor(now / 1000);
  return ahead <= 0 ? formatAge(seconds, now) : `in ${roughly(ahead)}`;
}

/** Formats the age of a time as `3 min ago`. `seconds` is Unix seconds, `now` Unix milliseconds. */
export function formatAge(seconds: number | null, now: number): string {
  if (!seconds) return '';
  return `${roughly(Math.max(0, Math.floor(now / 1000) - seconds))} ago`;
}

/** Formats seconds in their largest unit: `40 s`, `3 min`, `47 h`, `2 d`. */
function roughly(seconds: number): string {
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86_400)} d`;
}

/** Returns the text, or the sign for none if it is empty. */
export const textOrNone = (text: string | null | undefined): Span => text || NONE;

/** Formats seconds as `3 s`, `2 min 5 s` or `1 h 4 min`. */
export function formatDuration(seconds: number): string {
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return seconds % 60 ? `${minutes} min ${seconds % 60} s` : `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
}

/** Formats bytes as `7.8 GiB`. */
export function formatBytes(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`;
}

/** Formats a number with its noun: `1 agent`, `2 agents`. */
export const count = (number: number, noun: string, plural = `${noun}s`): string =>
  `${number} ${number === 1 ? noun : plural}`;

/** Returns the name of an agent, or its hostname in parentheses if it has no name yet. */
export const agentName = ({
  name,
  initial_hostname,
  node_id,
}: Pick<Agent, 'name' | 'initial_hostname' | 'node_id'>): string =>
  name ?? (initial_hostname ? `(${initial_hostname})` : `(${node_id.slice(0, 8)})`);

/** Returns the word that names an agent in another command: its name, or its ID. */
export const agentHandle = ({ name, node_id }: Pick<Agent, 'name' | 'node_id'>): string => name ?? node_id;

export const formatTags = (tags: Readonly<Record<string, string>>): string =>
  Object.entries(tags)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => (value === '' ? key : `${key}=${value}`))
    .join(' ');
