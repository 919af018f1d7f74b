/** The body of a timer of systemd. */
import * as Type from 'typebox';
import { closed, optional } from '../../kernel/schema.js';
import { processFields } from './systemd-fields.js';

const SPAN =
  '^\\d+(?:ms|s|sec|min|m|h|hr|d|day|days|w|week|weeks)(?: ?\\d+(?:ms|s|sec|min|m|h|hr|d|day|days|w|week|weeks))*$';
const span = (description: string) => optional(Type.String({ pattern: SPAN, maxLength: 64, description }));

export const TimerBodySchema = closed({
  name: Type.String({
    pattern: '^[A-Za-z0-9_][A-Za-z0-9:_.-]{0,199}$',
    description: 'Name of both units, without .timer and .service',
  }),
  command: Type.Union(
    [
      Type.String({ minLength: 1, maxLength: 4096 }),
      Type.Array(Type.String({ maxLength: 4096 }), { minItems: 1, maxItems: 128 }),
    ],
    { description: 'Command line as systemd reads it, or a list of arguments' },
  ),
  on_calendar: optional(
    Type.String({ minLength: 1, maxLength: 256, description: 'When it runs, such as "Mon..Fri 03:00" or "hourly"' }),
  ),
  every: span('Time between two runs, such as "15min"'),
  on_boot: span('Time after the start of the machine, such as "2min"'),
  randomized_delay: span('Time of which each run is delayed by a random part'),
  persistent: optional(
    Type.Boolean({ description: 'True: a run that was missed while the machine was off is made up for' }),
  ),
  description: optional(Type.String({ description: 'What it is, for people' })),
  ...processFields,
});

export type TimerBody = Type.Static<typeof TimerBodySchema>;
