/** The operations that the management API has to have, and those of them that are not built yet. */
export const LISTED_OPERATIONS: readonly string[] = `
POST /discover
GET /status
POST /auth/challenge
POST /auth/verify
GET /operators
POST /operators
GET /operators/{operator_id}
DELETE /operators/{operator_id}
GET /agents
POST /agents/{node_id}
DELETE /agents/{node_id}
GET /agents/{node_id}/attributes
PUT /agents/{node_id}/tags
PUT /agents/{node_id}/tags/{key}
DELETE /agents/{node_id}/tags/{key}
GET /tags
GET /agents/{node_id}/metrics
GET /agents/{node_id}/metrics/latest
GET /terminal
GET /terminal/session/{session_id}
DELETE /terminal/session/{session_id}
GET /terminal/session/{session_id}/transcript
POST /terminal/{node_id}
GET /maintenance-windows
POST /maintenance-windows
GET /maintenance-windows/{id}
PUT /maintenance-windows/{id}
DELETE /maintenance-windows/{id}
GET /channels
POST /channels
GET /channels/{id}
PUT /channels/{id}
DELETE /channels/{id}
POST /channels/{id}/test
GET /notifications
POST /notifications/read-all
POST /notifications/{id}/read
GET /modules
POST /modules
GET /modules/{name}
DELETE /modules/{name}
GET /assignments
POST /assignments
GET /assignments/{name}
DELETE /assignments/{name}
POST /assignments/{name}/apply
POST /assignments/{name}/plan
POST /agents/{node_id}/apply
GET /agents/{node_id}/drift
POST /agents/{node_id}/drift
GET /agents/{node_id}/drift/latest
POST /agents/{node_id}/plan
GET /agents/{node_id}/state
GET /agents/{node_id}/state/operations
GET /agents/{node_id}/state/operations/{operation_id}/output
GET /drift/{drift_id}
GET /state/operations
GET /state/operations/{operation_id}
GET /secrets
POST /secrets
GET /secrets/{name}
PUT /secrets/{name}
DELETE /secrets/{name}
GET /audit
DELETE /audit
GET /audit/retention
PUT /audit/retention
`
  .trim()
  .split('\n');

/** Take an operation away from here when it is built. */
export const NOT_BUILT_YET: readonly string[] = [
  'GET /terminal',
  'GET /terminal/session/{session_id}',
  'DELETE /terminal/session/{session_id}',
  'GET /terminal/session/{session_id}/transcript',
  'POST /terminal/{node_id}',
];
