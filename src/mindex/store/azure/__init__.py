"""The engine for indexed files in the cloud: one index of an Azure AI Search service."""
