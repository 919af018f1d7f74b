import * as Type from 'typebox';
import { route } from '../../src/contract/route.js';
import { closed, nullable, optional } from '../../src/kernel/schema.js';

const Item = closed({ name: Type.String(), size: Type.Integer() });

/** One route for each thing that the adapter has to do. */
export const TINY = {
  ping: route({
    id: 'ping',
    summary: 'public',
    tag: 'tiny',
    method: 'GET',
    path: '/ping',
    access: 'public',
    answers: { 200: closed({ pong: Type.Boolean(), address: nullable(Type.String()) }) },
    faults: ['rate_limited', 'signature_verification_failed'],
  }),
  listItems: route({
    id: 'listItems',
    summary: 'query',
    tag: 'tiny',
    method: 'GET',
    path: '/items',
    access: 'viewer',
    query: closed({
      limit: optional(Type.Integer({ minimum: 1 })),
      deep: optional(Type.Boolean()),
      ratio: optional(Type.Number()),
      sort: optional(Type.Enum(['up', 'down'])),
      filter: optional(Type.String()),
    }),
    answers: { 200: Type.Record(Type.String(), Type.Unknown()) },
    faults: [],
  }),
  getItem: route({
    id: 'getItem',
    summary: 'path parameter',
    tag: 'tiny',
    method: 'GET',
    path: '/items/{name}',
    access: 'viewer',
    params: closed({ name: Type.String({ minLength: 1, maxLength: 128 }) }),
    answers: { 200: Item },
    stream: Type.Union([
      closed({ event: Type.Literal('piece'), piece: Type.String() }),
      closed({ event: Type.Literal('result'), result: Item }),
    ]),
    faults: ['module_not_found', 'module_in_use'],
  }),
  putItem: route({
    id: 'putItem',
    summary: 'body',
    tag: 'tiny',
    method: 'PUT',
    path: '/items/{name}',
    access: 'operator',
    params: closed({ name: Type.String({ minLength: 1, maxLength: 128 }) }),
    body: closed({
      size: Type.Integer({ minimum: 0 }),
      note: optional(Type.String()),
      tags: optional(Type.Record(Type.String(), Type.Unknown())),
      parts: optional(Type.Array(closed({ id: Type.String(), label: optional(Type.String()) }))),
    }),
    answers: { 200: Type.Record(Type.String(), Type.Unknown()) },
    faults: [],
  }),
  dumpItems: route({
    id: 'dumpItems',
    summary: 'no JSON, in pieces',
    tag: 'tiny',
    method: 'GET',
    path: '/dump',
    access: 'viewer',
    mediaType: 'text/x-dump',
    answers: { 200: Type.String() },
    faults: ['module_not_found'],
  }),
  removeItem: route({
    id: 'removeItem',
    summary: 'no body at all',
    tag: 'tiny',
    method: 'DELETE',
    path: '/items/{name}',
    access: 'admin',
    params: closed({ name: Type.String({ minLength: 1, maxLength: 128 }) }),
    answers: { 204: null },
    faults: ['module_not_found'],
  }),
  run: route({
    id: 'run',
    summary: 'every member optional, streams',
    tag: 'tiny',
    method: 'POST',
    path: '/run',
    access: 'operator',
    body: closed({ name: optional(Type.String()) }),
    answers: { 200: Item, 202: Item },
    stream: Type.Union([
      closed({ event: Type.Literal('piece'), piece: Type.String() }),
      closed({ event: Type.Literal('result'), result: Item }),
    ]),
    faults: ['agent_timeout', 'operation_in_progress'],
  }),
} as const;

export type Tiny = typeof TINY;
