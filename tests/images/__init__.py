"""The built images, run as in their pods, on a real broker, kube-apiserver and S3 server."""
