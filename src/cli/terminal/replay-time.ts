/** A place in a recording as people give it. */
import { Fault } from '../../kernel/fault.js';

/**
 * `90`, `12:30`, `1:02:03.5` in seconds.
 * @throws Fault `usage` naming the flag
 */
export function parseTimeInRecording(text: string, flag: string): number {
  if (!/^\d{1,7}(:\d{1,2}){0,2}(\.\d{1,6})?$/.test(text)) {
    throw new Fault('usage', `${flag} takes a time in the recording, not "${text}"`, {
      hint: 'such as 90, 12:30 or 1:02:03',
    });
  }
  return text.split(':').reduce((seconds, part) => seconds * 60 + Number(part), 0);
}

/** `12:30`, `1:02:03`. */
export function formatTimeInRecording(seconds: number): string {
  const whole = Math.floor(seconds);
  const parts = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const [first, ...others] = parts[0] === 0 ? parts.slice(1) : parts;
  return [String(first), ...others.map((part) => String(part).padStart(2, '0'))].join(':');
}
