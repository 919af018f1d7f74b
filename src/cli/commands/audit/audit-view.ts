/** How audit events are shown. */
import type { AuditEvent } from '../../../contract/audit.js';
import { type Line, type Span, styled, type TableView } from '../../view.js';

export const auditTable = (events: readonly AuditEvent[], titles: boolean): TableView => ({
  kind: 'table',
  titles,
  columns: [
    { title: 'TIME', whole: true },
    { title: 'EVENT', whole: true },
    { title: 'BY' },
    { title: 'SUMMARY' },
    { title: 'SEVERITY', wide: true },
    { title: 'ABOUT', wide: true },
    { title: 'ID', wide: true },
  ],
  rows: events.map((event) => [
    timeOf(event),
    eventType(event),
    nameOf(event.actor),
    event.summary,
    event.severity,
    `${event.target.type} ${event.target.name || event.target.id}`,
    event.id,
  ]),
  empty: 'No events.',
});

/** One event of a log that is followed: nobody knows how wide the next one is. */
export const auditLine = (event: AuditEvent): Line => [
  styled('dim', timeOf(event)),
  '  ',
  eventType(event, 24),
  `  ${nameOf(event.actor).padEnd(12)}  `,
  event.summary,
];

const timeOf = ({ timestamp }: AuditEvent): string => timestamp.replace(/\.\d+Z$/, 'Z');

const nameOf = ({ name, type }: AuditEvent['actor']): string => name || type;

function eventType({ event_type, severity }: AuditEvent, width = 0): Span {
  const text = event_type.padEnd(width);
  if (severity === 'critical') return styled('bad', text);
  return severity === 'warning' ? styled('warn', text) : text;
}
