"""The sandbox from inside.

    import wardian
    wardian.spawn('ls | wc -l')['stdout']
    wardian.call('extension', 'method', key='value')
    wardian.fetch('GET', 'https://example.org/')['status']
"""
from _wardian import extension_call, fetch, is_extension, spawn

__all__ = ['call', 'extension_call', 'fetch', 'is_extension', 'spawn']

call = extension_call
