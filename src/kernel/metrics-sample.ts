/** One measurement of a machine: the same shape on the link, in the store and in the API. */
import * as Type from 'typebox';
import { closed, nullable } from './schema.js';

const bytes = (description: string) => nullable(Type.Integer({ minimum: 0, description }));

/** What a machine does not tell is null. */
export const MetricsSampleSchema = closed({
  collected_at: Type.Integer({ minimum: 0, description: 'Unix time in seconds, by the clock of the agent' }),
  cpu_usage: nullable(
    Type.Number({ minimum: 0, maximum: 100, description: 'Percent of all processors since the sample before' }),
  ),
  memory_used: bytes('Bytes that are not available to programs'),
  memory_total: bytes('Bytes'),
  disk_used: bytes('Bytes of the file system that holds the system'),
  disk_total: bytes('Bytes'),
  uptime: nullable(Type.Integer({ minimum: 0, description: 'Seconds since the machine was started' })),
});

export type MetricsSample = Type.Static<typeof MetricsSampleSchema>;
