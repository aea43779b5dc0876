<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="zh_CN" sourcelanguage="en">
<context>
    <name>models</name>
    <message>
        <source>"{value}" is not the address of a server. Write it like http://localhost:11434.</source>
        <translation>“{value}”不是服务器地址。请写成 http://localhost:11434 的形式。</translation>
    </message>
    <message>
        <source>The address of the server holds a name, a key or a question mark. Leave them out; the key has a field of its own.</source>
        <translation>服务器地址中包含用户名、密钥或问号。请去掉它们；密钥有单独的输入框。</translation>
    </message>
    <message>
        <source>The connection to {host} would not be encrypted: everyone on the way could read your text. Use https, or allow it by "Allow unencrypted connections".</source>
        <translation>与 {host} 的连接不会加密，途中的任何人都能读到您的文字。请使用 https，或打开“允许未加密的连接”。</translation>
    </message>
    <message>
        <source>The server is not set up</source>
        <translation>尚未设置服务器</translation>
    </message>
    <message>
        <source>The server cannot be reached</source>
        <translation>无法连接服务器</translation>
    </message>
    <message>
        <source>The server refuses the key</source>
        <translation>服务器拒绝了密钥</translation>
    </message>
    <message>
        <source>The server does not have this model</source>
        <translation>服务器上没有此模型</translation>
    </message>
    <message>
        <source>The server does not answer</source>
        <translation>服务器没有响应</translation>
    </message>
    <message>
        <source>This is not a server for language models</source>
        <translation>这不是语言模型服务器</translation>
    </message>
    <message>
        <source>The connection broke off</source>
        <translation>连接中断</translation>
    </message>
    <message>
        <source>The server refuses this request</source>
        <translation>服务器拒绝了请求</translation>
    </message>
    <message>
        <source>The server has too much to do</source>
        <translation>服务器过于繁忙</translation>
    </message>
    <message>
        <source>The server failed</source>
        <translation>服务器出错</translation>
    </message>
    <message>
        <source>This works only with a model on this machine</source>
        <translation>此功能只能使用本机模型</translation>
    </message>
    <message>
        <source>No server has been set up. Enter its address in the window of models, or choose a local model.</source>
        <translation>尚未设置服务器。请在模型窗口中填写地址，或选择本机模型。</translation>
    </message>
    <message>
        <source>{host} cannot be reached ({reason}). Check the address, that the server runs, and the network; or choose a local model.</source>
        <translation>无法连接 {host}（{reason}）。请检查地址、服务器是否在运行以及网络；也可以选择本机模型。</translation>
    </message>
    <message>
        <source>{host} has said nothing for {seconds} seconds. It may be loading its model or be busy: try again, or choose a local model.</source>
        <translation>{host} 已有 {seconds} 秒没有响应，可能正在加载模型或较忙。请重试，或选择本机模型。</translation>
    </message>
    <message>
        <source>{host} broke off its answer. What has come so far is kept; try again for the rest.</source>
        <translation>{host} 中断了回答。已收到的内容会保留；请重试以获得其余部分。</translation>
    </message>
    <message>
        <source>{host} answers, but not as a server for language models does ({reason}). Check the address and its port; it usually ends in /v1.</source>
        <translation>{host} 有响应，但不像语言模型服务器（{reason}）。请检查地址和端口；地址通常以 /v1 结尾。</translation>
    </message>
    <message>
        <source>{host} has no model yet. Load one there, then try again.</source>
        <translation>{host} 上还没有模型。请先在那里加载一个，再重试。</translation>
    </message>
    <message>
        <source>{host} has no model "{model}". It has {known}. Choose one of them.</source>
        <translation>{host} 上没有模型“{model}”，现有 {known}。请从中选择。</translation>
    </message>
    <message>
        <source>{host} has no model "{model}". Choose one that it has.</source>
        <translation>{host} 上没有模型“{model}”。请选择它已有的模型。</translation>
    </message>
    <message>
        <source>{host} wants another key ({reason}). Enter the key of this server anew.</source>
        <translation>{host} 需要其他密钥（{reason}）。请重新输入此服务器的密钥。</translation>
    </message>
    <message>
        <source>{host} has too much to do ({reason}). Try again in a moment.</source>
        <translation>{host} 过于繁忙（{reason}）。请稍后重试。</translation>
    </message>
    <message>
        <source>{host} failed ({reason}). Try again; its own log says more.</source>
        <translation>{host} 出错（{reason}）。请重试；详情见服务器日志。</translation>
    </message>
    <message>
        <source>{host} refuses the request ({reason}). Select a shorter text, or choose another model.</source>
        <translation>{host} 拒绝了请求（{reason}）。请选择较短的文字，或换一个模型。</translation>
    </message>
    <message>
        <source>{what} Choose a model on this machine for it.</source>
        <translation>{what}请为此选择本机模型。</translation>
    </message>
    <message>
        <source>The server plans its memory itself.</source>
        <translation>服务器自行管理内存。</translation>
    </message>
    <message>
        <source>Servers have no common way to hold an answer to such a form.</source>
        <translation>各服务器没有统一的方式来限定这种回答格式。</translation>
    </message>
</context>
</TS>
