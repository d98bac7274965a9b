"""What tests share: servers, clients, oracles."""
