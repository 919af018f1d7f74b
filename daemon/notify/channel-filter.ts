/** Filters of channels: the notifications that a channel receives, by event type and severity. */
import { SEVERITIES } from '../../src/contract/audit.js';
import type { FaultDetail } from '../../src/kernel/fault.js';
import { EVENT_SEVERITY, type EventType } from '../core/domain-event.js';
import { type ChannelRow, patternsOf } from './channel-store.js';
import { NOTIFICATION_RULES } from './notification-rules.js';

type ChannelFilter = Pick<ChannelRow, 'events' | 'min_severity'>;

/** Returns true if a channel with this filter receives notifications of that event type. */
export function accepts({ events, min_severity: least }: ChannelFilter, type: EventType): boolean {
  const severities: readonly string[] = SEVERITIES;
  if (severities.indexOf(EVENT_SEVERITY[type]) < severities.indexOf(least)) return false;
  const patterns = patternsOf({ events });
  return patterns.length === 0 || patterns.some((pattern) => matches(pattern, type));
}

/** Returns what is stored for the patterns. */
export const storedPatterns = (patterns: readonly string[]): string => [...new Set(patterns)].sort().join(' ');

/** Returns a mistake for each pattern that matches no event of which there are notifications. */
export function patternMistakes(patterns: readonly string[]): readonly FaultDetail[] {
  return patterns.flatMap((pattern, index) => {
    if (TYPES.some((type) => matches(pattern, type))) return [];
    const [group = ''] = pattern.split('.');
    const near = TYPES.filter((type) => type.startsWith(`${group}.`));
    const groups = [...new Set(TYPES.map((type) => `${type.split('.')[0]}.*`))];
    const known = near.length > 0 ? near : groups;
    const message = `matches no event that raises a notification; there are ${known.join(', ')}`;
    return [{ path: `/events/${index}`, message: `${JSON.stringify(pattern)} ${message}` }];
  });
}

const TYPES = Object.keys(NOTIFICATION_RULES) as readonly EventType[];

const matches = (pattern: string, type: string): boolean =>
  pattern.endsWith('*') ? type.startsWith(pattern.slice(0, -1)) : type === pattern;
