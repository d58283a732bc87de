"""What `up` starts and `down` stops: Prefect server, worker, MLflow and the adopter, on this machine only."""
