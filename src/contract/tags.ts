/** Tags that operators put on agents. */
import * as Type from 'typebox';
import { closed } from '../kernel/schema.js';
import { route } from './route.js';
import { NodeParams, StringMap } from './shapes.js';

const params = closed({ node_id: Type.String({ minLength: 1, maxLength: 64 }), key: Type.String({ minLength: 1 }) });

export const tagRoutes = {
  listTags: route({
    id: 'listTags',
    summary: 'All distinct tag keys and values',
    tag: 'tags',
    method: 'GET',
    path: '/tags',
    access: 'viewer',
    answers: { 200: closed({ tags: Type.Record(Type.String(), Type.Array(Type.String())) }) },
    faults: [],
  }),
  replaceTags: route({
    id: 'replaceTags',
    summary: 'Replace all tags of an agent',
    tag: 'tags',
    method: 'PUT',
    path: '/agents/{node_id}/tags',
    access: 'operator',
    params: NodeParams,
    body: closed({ tags: StringMap }),
    answers: { 204: null },
    faults: ['agent_not_found', 'invalid_tag'],
  }),
  setTag: route({
    id: 'setTag',
    summary: 'Set one tag of an agent',
    tag: 'tags',
    method: 'PUT',
    path: '/agents/{node_id}/tags/{key}',
    access: 'operator',
    params,
    body: closed({ value: Type.String() }),
    answers: { 204: null },
    faults: ['agent_not_found', 'invalid_tag'],
  }),
  removeTag: route({
    id: 'removeTag',
    summary: 'Remove one tag of an agent',
    tag: 'tags',
    method: 'DELETE',
    path: '/agents/{node_id}/tags/{key}',
    access: 'operator',
    params,
    answers: { 204: null },
    faults: ['agent_not_found', 'tag_not_found'],
  }),
} as const;
