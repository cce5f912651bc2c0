#!/usr/bin/env bash
# Makes the demo's capture on the tests' control plane: releases of a small shop, and what befell them.
#
# usage: cargo test --test with-cluster -- examples/make-nucleus.sh FILE
#        (KUBECONFIG, kubectl, helm and DRIFT come from there)
set -euo pipefail
to=$(realpath "${1:?usage: make-nucleus.sh FILE}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# chart NAME: a chart of one template, the manifest on standard input
chart() {
  mkdir -p "$1/templates"
  printf 'apiVersion: v2\nname: %s\nversion: 1.4.2\nappVersion: "5.1"\n' "$1" >"$1/Chart.yaml"
  cat >"$1/templates/$1.yaml"
}

# record NAMESPACE NAME REVISION JQ: rewrites a release record, as Helm's own manager would
record() {
  local name="sh.helm.release.v1.$2.v$3" payload
  payload=$(kubectl get secret -n "$1" "$name" -o jsonpath='{.data.release}' | base64 -d | base64 -d | gunzip |
    jq -c "$4" | gzip -nc | base64 -w0 | base64 -w0)
  kubectl patch secret -n "$1" "$name" --field-manager=helm --type=merge -p "{\"data\":{\"release\":\"$payload\"}}" >/dev/null
}

kubectl create namespace prod >/dev/null
kubectl create namespace staging >/dev/null
kubectl apply --server-side -f - >/dev/null <<'YAML'
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: queues.example.com}
spec:
  group: example.com
  names: {kind: Queue, listKind: QueueList, plural: queues, singular: queue}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              depth: {type: integer}
              mode: {type: string, default: fifo}
YAML
kubectl wait --for=condition=Established crd/queues.example.com --timeout=30s >/dev/null

# nucleus: everything that can happen to a release by hand
chart nucleus <<'YAML'
apiVersion: apps/v1
kind: Deployment
metadata: {name: api, labels: {app: api}}
spec:
  replicas: 3
  selector: {matchLabels: {app: api}}
  template:
    metadata: {labels: {app: api}}
    spec:
      containers:
      - name: api
        image: registry.example/nucleus/api:5.1.0
        ports: [{name: http, containerPort: 8080}]
        env: [{name: LOG_LEVEL, value: info}]
        resources: {requests: {cpu: 250m, memory: 256Mi}, limits: {memory: 512Mi}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: worker, labels: {app: worker}}
spec:
  replicas: 2
  selector: {matchLabels: {app: worker}}
  template:
    metadata: {labels: {app: worker}}
    spec:
      containers: [{name: worker, image: "registry.example/nucleus/worker:5.1.0"}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: "registry.example/nucleus/web:5.1.0"}]
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 4
  maxReplicas: 8
---
apiVersion: v1
kind: Service
metadata: {name: api}
spec:
  selector: {app: api}
  ports: [{name: http, port: 80, targetPort: http}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {mode: fast, retries: "3"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: features}
data: {search: "on"}
---
apiVersion: v1
kind: Secret
metadata: {name: login}
stringData: {user: nucleus, password: first}
---
apiVersion: example.com/v1
kind: Queue
metadata: {name: orders}
spec: {depth: 100}
YAML
helm install nucleus nucleus -n prod >/dev/null

# atlas: as it was installed
chart atlas <<'YAML'
apiVersion: v1
kind: Service
metadata: {name: atlas}
spec: {selector: {app: atlas}, ports: [{port: 80}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: atlas}
data: {tiles: "256"}
YAML
helm install atlas atlas -n prod >/dev/null

# pulsar: an upgrade whose helm was killed two hours ago
chart pulsar <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: pulsar}
data: {rate: "10"}
YAML
helm install pulsar pulsar -n staging >/dev/null
helm upgrade pulsar pulsar -n staging >/dev/null
record staging pulsar 1 '.info.status="deployed"'
kubectl label --overwrite --field-manager=helm secret -n staging sh.helm.release.v1.pulsar.v1 status=deployed >/dev/null
record staging pulsar 2 ".info.status=\"pending-upgrade\" | .info.description=\"Preparing upgrade\" | .info.last_deployed=\"$(date -u -d '2 hours ago' +%Y-%m-%dT%H:%M:%SZ)\""
kubectl label --overwrite --field-manager=helm secret -n staging sh.helm.release.v1.pulsar.v2 status=pending-upgrade >/dev/null

# quasar: an upgrade that failed half-way, on a selector that cannot be changed
chart quasar <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: quasar}
data: {beam: narrow}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: quasar}
spec:
  replicas: 1
  selector: {matchLabels: {app: quasar}}
  template:
    metadata: {labels: {app: quasar}}
    spec:
      containers: [{name: quasar, image: "registry.example/quasar:1"}]
YAML
helm install quasar quasar -n staging >/dev/null
sed -i -e 's/beam: narrow/beam: wide/' -e 's/app: quasar}/app: beacon}/' quasar/templates/quasar.yaml
! helm upgrade quasar quasar -n staging >/dev/null 2>&1

# relic: uninstalled with its history kept, but one of its objects came back
chart relic <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: relic}
data: {age: old}
YAML
helm install relic relic -n staging >/dev/null
saved=$(kubectl get configmap relic -n staging -o json | jq 'del(.metadata.uid, .metadata.resourceVersion, .metadata.creationTimestamp)')
helm uninstall relic -n staging --keep-history >/dev/null
record staging relic 1 ".info.deleted=\"$(date -u -d '3 hours ago' +%Y-%m-%dT%H:%M:%SZ)\""
kubectl create -f - <<<"$saved" >/dev/null

# What people, pipelines and controllers did since.
for _ in $(seq 60); do
  [ "$(kubectl get deployment web -n prod -o jsonpath='{.spec.replicas}')" = 4 ] && break
  sleep 0.5
done
sleep 3 # past the window in which Helm's own manager may still write
KUBE_EDITOR="sed -i s/api:5.1.0/api:5.1.1-debug/" kubectl edit deployment api -n prod >/dev/null
kubectl set env deployment/api -n prod TRACE=1 >/dev/null
kubectl scale deployment worker -n prod --replicas=6 >/dev/null
kubectl patch deployment api -n prod --field-manager=Go-http-client --type=strategic -p \
  '{"spec":{"template":{"spec":{"containers":[{"name":"tap","image":"registry.example/tools/tap:1","securityContext":{"privileged":true}}]}}}}' >/dev/null
kubectl rollout restart deployment/worker -n prod >/dev/null
kubectl delete configmap features -n prod >/dev/null
kubectl patch configmap settings -n prod --type=merge -p '{"data":{"retries":null}}' >/dev/null
kubectl patch secret login -n prod --type=merge -p '{"stringData":{"password":"second"}}' >/dev/null
kubectl patch queue orders -n prod --field-manager=queue-tuner --type=merge -p '{"spec":{"depth":500}}' >/dev/null
sleep 2

"$DRIFT" capture -A --to "$to"
