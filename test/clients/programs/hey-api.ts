/** The whole loop with the client that @hey-api/openapi-ts generates in the folder `sdk` beside this file. */
import { loop, type Orchestrator } from './loop.js';
import * as api from './sdk';
import { client } from './sdk/client.gen';

client.setConfig({ baseUrl: loop.url });

const throwOnError = true as const;
const ofAgent = (node_id: string) => ({ path: { node_id }, throwOnError });

const orchestrator: Orchestrator = {
  challenge: async (public_key) => (await api.createChallenge({ body: { public_key }, throwOnError })).data.nonce,
  logIn: async (public_key, signature) => {
    const { data } = await api.verifyChallenge({ body: { public_key, signature }, throwOnError });
    client.setConfig({ auth: data.token });
  },
  agents: async () => (await api.listAgents({ throwOnError })).data,
  approve: async (node_id, name) =>
    (await api.setAgentStatus({ ...ofAgent(node_id), body: { status: 'approved', name } })).data,
  setTag: async (node_id, key, value) => {
    await api.setTag({ path: { node_id, key }, body: { value }, throwOnError });
  },
  uploadModule: async (name, content) => (await api.uploadModule({ body: { name, content }, throwOnError })).data,
  assign: async (name, modules, selector) =>
    (await api.createAssignment({ body: { name, modules, selector }, throwOnError })).data,
  plan: async (node_id) => (await api.planAgent({ ...ofAgent(node_id), body: { modules: [] } })).data,
  apply: async (node_id, expect) =>
    (await api.applyAgent({ ...ofAgent(node_id), body: { modules: [], expect, wait: false } })).data,
  operation: async (operation_id) => (await api.getOperation({ path: { operation_id }, throwOnError })).data,
  checkDrift: async (node_id) => (await api.checkDrift(ofAgent(node_id))).data,
  refusal: async () => (await api.getModule({ path: { name: 'nosuch' } })).error?.code,
};

await loop.run(orchestrator);
