/** The whole loop with openapi-fetch and the types of openapi-typescript, which stand in `api.ts` beside this file. */
import createClient from 'openapi-fetch';
import type { components, paths } from './api.js';
import { loop, type Orchestrator } from './loop.js';

// The streams of plan and apply are another media type: without the second parameter their answers could also be a text.
type Json = 'application/json' | 'application/problem+json';
const client = createClient<paths, Json>({ baseUrl: loop.url });

/** Returns the answer, or throws the problem document. */
function answerOf<T>({ data, error }: { readonly data?: T; readonly error?: components['schemas']['Problem'] }): T {
  if (data === undefined) throw new Error(`${error?.code}: ${error?.detail}`);
  return data;
}

const ofAgent = (node_id: string) => ({ params: { path: { node_id } } });

const orchestrator: Orchestrator = {
  challenge: async (public_key) =>
    answerOf(await client.POST('/api/v1/auth/challenge', { body: { public_key } })).nonce,
  logIn: async (public_key, signature) => {
    const { token } = answerOf(await client.POST('/api/v1/auth/verify', { body: { public_key, signature } }));
    client.use({
      onRequest: ({ request }) => {
        request.headers.set('authorization', `Bearer ${token}`);
      },
    });
  },
  agents: async () => answerOf(await client.GET('/api/v1/agents')),
  approve: async (node_id, name) =>
    answerOf(
      await client.POST('/api/v1/agents/{node_id}', { ...ofAgent(node_id), body: { status: 'approved', name } }),
    ),
  setTag: async (node_id, key, value) => {
    const { error } = await client.PUT('/api/v1/agents/{node_id}/tags/{key}', {
      params: { path: { node_id, key } },
      body: { value },
    });
    if (error !== undefined) throw new Error(error.code);
  },
  uploadModule: async (name, content) => answerOf(await client.POST('/api/v1/modules', { body: { name, content } })),
  assign: async (name, modules, selector) =>
    answerOf(await client.POST('/api/v1/assignments', { body: { name, modules, selector } })),
  plan: async (node_id) =>
    answerOf(await client.POST('/api/v1/agents/{node_id}/plan', { ...ofAgent(node_id), body: { modules: [] } })),
  apply: async (node_id, expect) =>
    answerOf(
      await client.POST('/api/v1/agents/{node_id}/apply', {
        ...ofAgent(node_id),
        body: { modules: [], expect, wait: false },
      }),
    ),
  operation: async (operation_id) =>
    answerOf(await client.GET('/api/v1/state/operations/{operation_id}', { params: { path: { operation_id } } })),
  checkDrift: async (node_id) => answerOf(await client.POST('/api/v1/agents/{node_id}/drift', ofAgent(node_id))),
  refusal: async () =>
    (await client.GET('/api/v1/modules/{name}', { params: { path: { name: 'nosuch' } } })).error?.code,
};

await loop.run(orchestrator);
