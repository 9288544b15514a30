// Decides requests by identity policies: a JSON list of {policies, action, resource, context} in, a list of "Allowed" or what refused it out.
import { runSimulation } from '@cloud-copilot/iam-simulate'

const account = '123456789012'
// KMS asks the key's policy first; this is the one of a key that leaves the decision to its account.
const keyPolicy = {
  Version: '2012-10-17',
  Statement: [{ Effect: 'Allow', Principal: { AWS: `arn:aws:iam::${account}:root` }, Action: 'kms:*', Resource: '*' }]
}
const chunks = []
for await (const chunk of process.stdin) chunks.push(chunk)

const told = []
for (const { policies, action, resource, context } of JSON.parse(Buffer.concat(chunks).toString())) {
  const response = await runSimulation(
    {
      request: {
        principal: `arn:aws:iam::${account}:role/function`,
        action,
        resource: { resource, accountId: account },
        contextVariables: context
      },
      resourcePolicy: action.startsWith('kms:') ? keyPolicy : undefined,
      identityPolicies: policies.map((policy, number) => ({ name: `policy-${number}`, policy })),
      serviceControlPolicies: [],
      resourceControlPolicies: []
    },
    {}
  )
  told.push(response.errors ? `error: ${JSON.stringify(response.errors)}` : response.overallResult ?? response.analysis?.result ?? JSON.stringify(response))
}
console.log(JSON.stringify(told))
